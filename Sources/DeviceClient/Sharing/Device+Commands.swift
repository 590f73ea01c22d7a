internal import EventLoop
internal import Notifications

/// What other processes ask of the device.
extension Device {
  typealias Commands = [(place: Int64, command: StoredCommand?)]

  /// Begins to look for commands of other processes.
  func startCommands() {
    let timer = Timer(on: loop) { [weak self] in
      guard let self else { return }
      Task(executorPreference: self.loop) { await self.lookForCommands() }
    }
    commandTimer = timer
    timer.start(after: configuration.commandMilliseconds, repeating: configuration.commandMilliseconds)
  }

  private func lookForCommands() async {
    guard !isLooking else { return }
    isLooking = true
    carryOut(await newCommands())
    isLooking = false
  }

  /// Reads the commands that other processes have stored since the last call.
  func newCommands() async -> Commands {
    // A file that is locked at this moment, or damaged, shows itself at the next change of the device's own.
    guard let database, case .success(let commands) = await database.newCommands(after: lastCommand) else { return [] }
    return commands
  }

  /// Does what other processes have asked for. The command leaves the database with its effect, so it is done once.
  func carryOut(_ commands: Commands) {
    guard let connection, !commands.isEmpty else { return }
    for (place, command) in commands where place > lastCommand {
      let former = delivered
      do throws(DeviceError) {
        try connection.carryOut(command, place)
      } catch {
        // Too much waits for the disk. Later commands keep their order.
        return
      }
      lastCommand = place
      if case .removeDelivered(let showings)? = command {
        let listed = delivered
        closePanel(of: showings.map(\.identifier).filter { removed in !listed.contains { $0.identifier == removed } })
        tellPhone(ofCleared: former.filter { one in !listed.contains { $0.isSame(one) } })
      }
    }
  }
}

extension DeviceConnection {
  /// Does what another process has asked for; nil is nothing. The command leaves the database together with the effect.
  ///
  /// Throws if too much waits for the disk.
  func carryOut(_ command: StoredCommand?, _ place: Int64) throws(DeviceError) {
    var missed: DeviceEvent?
    try memory.writer.checkSpace()
    switch command {
    case .add(let frame, let at):
      // What is due at once is shown at this time. The other process has read the clock of the trigger.
      let time = frame.trigger == nil ? memory.clock.now() : LocalTime(wall: at, elapsed: at)
      do throws(DeviceError) {
        try memory.store.check(frame, localTime: time)
        memory.add(frame, localTime: time)
      } catch {
        // It was due some time in the zone in which the other process has checked it.
        missed = .dropped(delivery: nil, id: frame.id, identifiers: [frame.identifier], .expired)
      }
    case .removePending(let showings): memory.removePending(memory.store.pending(showings))
    case .removeDelivered(let showings): _ = memory.clear(memory.store.delivered(showings))
    case .badge(let number): try memory.setBadge(number)
    case .categories(let categories):
      let request = Device.uniqueID()
      do throws(DeviceError) {
        _ = try change(.categories(categories), request: Name(request))
      } catch {
        // They do not fit into a frame of this cluster, which the other process cannot know. A retry cannot help.
        guard !error.isRetriable else { throw error }
        missed = .refused(RefusedFrame(.request(request), .badFrame, field: "categories", rule: error.description))
      }
    case nil: break
    }
    memory.writer.append([.carriedOut(place)])
    if let missed { memory.writer.whenDurable { [weak self] failure in if failure == nil { self?.memory.tell?(missed) } } }
  }
}
