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
    guard let database, case .success(let commands) = await database.newCommands(after: lastCommand, force: hasUndone) else { return [] }
    return commands
  }

  /// Does what other processes have asked for. The command leaves the database with its effect, so it is done once.
  func carryOut(_ commands: Commands) {
    guard let connection, !commands.isEmpty else { return }
    hasUndone = false
    for (place, command) in commands where place > lastCommand {
      let former = delivered
      do throws(DeviceError) {
        try connection.carryOut(command, place)
      } catch {
        // Too much waits for the disk. Later commands keep their order.
        hasUndone = true
        return
      }
      lastCommand = place
      if case .removeDelivered(let showings)? = command {
        closePanel(ofRemoved: showings.map(\.identifier))
        let listed = delivered
        tellPhone(ofCleared: former.filter { one in !listed.contains { $0.isSame(one) } })
      }
    }
  }

  private func closePanel(ofRemoved identifiers: [Name]) {
    let listed = delivered.map(\.identifier)
    closePanel(of: identifiers.filter { !listed.contains($0) })
  }
}
