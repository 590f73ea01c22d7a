import Notifications

/// The part of a run's load that one of its processes makes: some of the people with their devices, and their part of the rate. A value.
package struct LoadShare: Sendable, Hashable {
  /// The number of the share, from 1 on.
  package let number: Int
  /// The number of all shares.
  package let count: Int
  /// The load of all shares.
  package let whole: LoadPlan
  /// The load of this share alone.
  package let plan: LoadPlan
  /// The number of its first device among all devices of the run.
  package let firstDevice: Int
  /// The number of its first person among all people of the run.
  package let firstUser: Int
  /// The number of its first request among all requests of the run.
  package let firstRequest: Int
}

extension LoadShare {
  /// Makes the only share of a run with one process.
  package init(all plan: LoadPlan) {
    self.init(number: 1, count: 1, whole: plan, plan: plan, firstDevice: 0, firstUser: 0, firstRequest: 0)
  }

  /// Names its devices, people and requests.
  func names(run: String, series: UInt64) -> LoadNames {
    LoadNames(run: run, series: series, firstDevice: firstDevice, firstUser: firstUser, firstRequest: firstRequest)
  }

  /// The numbers of its devices among all devices of the run.
  package var devices: Range<Int> { firstDevice..<(firstDevice + plan.devices.count) }

  /// The numbers of the requests of all shares, as this share counts: those of others are negative or beyond its own.
  var requestsOfRun: Range<Int> {
    let last = whole.share(count, of: count)
    return -firstRequest..<(last.firstRequest + LoadSchedule(last.plan.requests).total - firstRequest)
  }

  /// The target of a request of the run, which may be one of another share.
  func target(ofRequest number: Int, run: String) -> Name {
    var (share, request) = (self, number)
    if count > 1 {
      let all = firstRequest + number
      share = (1...count).lazy.map { self.whole.share($0, of: self.count) }.last { $0.firstRequest <= all } ?? self
      request = all - share.firstRequest
    }
    return share.names(run: run, series: 0).target(share.plan.request(request).target)
  }
}

extension LoadPlan {
  /// The most shares of a run.
  package static let maximumShares = 100

  /// Checks that each of several shares has a load.
  package func check(shares count: Int) throws(Problem) {
    guard count <= users else {
      throw Problem(flag: "share", rule: "must not make more shares than people, of which --devices and --devices-per-user make \(users)")
    }
    guard count <= requests.rate else { throw Problem(flag: "share", rule: "must not make more shares than --rate, which they divide") }
    for number in 1...count {
      do throws(Problem) { try share(number, of: count).plan.check() } catch {
        throw Problem(flag: "share", rule: "makes a share that cannot be carried out: --\(error.flag) \(error.rule)")
      }
    }
  }

  /// A share of the load. All shares together have the people, devices, requests and new connections of the plan.
  ///
  /// - Parameters:
  ///   - number: from 1 on.
  ///   - count: the number of shares, as ``check(shares:)`` allows it.
  package func share(_ number: Int, of count: Int) -> LoadShare {
    func part(_ whole: Int, _ number: Int = number) -> Range<Int> { (whole * (number - 1) / count)..<(whole * number / count) }
    func load(ofShare number: Int) -> Requests {
      var own = requests
      own.rate = part(requests.rate, number).count
      return own
    }
    let people = part(users)
    let ownDevices = (people.lowerBound * devices.perUser)..<min(people.upperBound * devices.perUser, devices.count)
    var plan = self
    plan.devices.count = ownDevices.count
    plan.devices.connectRate = max(1, part(devices.connectRate).count)
    plan.requests = load(ofShare: number)
    plan.seed = seed ^ LoadLot.mixed(UInt64(number - 1))
    return LoadShare(
      number: number, count: count, whole: self, plan: plan, firstDevice: ownDevices.lowerBound, firstUser: people.lowerBound,
      firstRequest: (1..<number).reduce(0) { $0 + LoadSchedule(load(ofShare: $1)).total })
  }
}
