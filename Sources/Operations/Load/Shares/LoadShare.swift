/// The part of a run's load that one of its processes makes: some of the people with their devices, and their part of the rate. A value.
public struct LoadShare: Sendable, Hashable {
  /// The number of the share, from 0 on. The first process has share 0.
  public let number: Int
  /// The load of this share alone.
  public let plan: LoadPlan
  /// The number of its first device among all devices of the run.
  public let firstDevice: Int
  /// The number of its first person among all people of the run.
  public let firstUser: Int

  /// Makes the only share of a run with one process.
  public init(all plan: LoadPlan) { (number, self.plan, firstDevice, firstUser) = (0, plan, 0, 0) }

  fileprivate init(_ number: Int, _ plan: LoadPlan, firstDevice: Int, firstUser: Int) {
    (self.number, self.plan, self.firstDevice, self.firstUser) = (number, plan, firstDevice, firstUser)
  }

  /// Names its devices, people and requests.
  func names(run: String, series: UInt64) -> LoadNames {
    LoadNames(run: run, series: series, firstDevice: firstDevice, firstUser: firstUser)
  }
}

extension LoadPlan {
  /// The most processes of a run.
  public static let maximumProcesses = 100

  /// Checks that each of several processes gets a share.
  public func check(processes: Int) throws(Problem) {
    guard processes <= users else {
      throw Problem(flag: "processes", rule: "must not be more than the people, of which --devices and --devices-per-user make \(users)")
    }
    guard processes <= requests.rate else { throw Problem(flag: "processes", rule: "must not be more than --rate, which they divide") }
    for number in 0..<processes {
      do throws(Problem) { try share(number, of: processes).plan.check() } catch {
        throw Problem(flag: "processes", rule: "makes a share that cannot be carried out: --\(error.flag) \(error.rule)")
      }
    }
  }

  /// The share of one of several processes. All shares together have the people, devices, requests and new connections of the plan.
  ///
  /// - Parameters:
  ///   - number: from 0 on.
  ///   - count: the number of processes, as ``check(processes:)`` allows it.
  public func share(_ number: Int, of count: Int) -> LoadShare {
    func part(_ whole: Int) -> Range<Int> { (whole * number / count)..<(whole * (number + 1) / count) }
    let people = part(users)
    let ownDevices = (people.lowerBound * devices.perUser)..<min(people.upperBound * devices.perUser, devices.count)
    var plan = self
    plan.devices.count = ownDevices.count
    plan.devices.connectRate = max(1, part(devices.connectRate).count)
    plan.requests.rate = part(requests.rate).count
    plan.seed = seed ^ LoadLot.mixed(UInt64(number))
    return LoadShare(number, plan, firstDevice: ownDevices.lowerBound, firstUser: people.lowerBound)
  }

  /// The pairs of a request and one of its devices.
  var pairs: Int { (0..<LoadSchedule(requests).total).reduce(0) { $0 + devices(of: request($1).target).count } }
}
