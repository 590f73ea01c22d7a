internal import JSON

extension LimitHistory {
  /// Writes the periods as an array.
  ///
  /// - Parameter beginsPeriod: whether the last one begins with the record, and so has no `from`.
  func write(beginsPeriod: Bool, to json: inout JSONWriter) {
    json.openArray()
    for (index, period) in periods.enumerated() {
      json.openObject()
      if !(beginsPeriod && index == periods.count - 1) { json.member("from", period.from) }
      if let limit = period.limit {
        if let number = limit.perTarget { json.member("perTarget", number) }
        if let number = limit.perApplication { json.member("perApplication", number) }
        json.member("window", limit.window)
      }
      json.member("by", period.by)
      json.closeObject()
    }
    json.closeArray()
  }

  /// Reads the member `limits` of an application's record.
  ///
  /// - Parameter timestamp: the record's timestamp. A period without a beginning begins some seconds after it.
  init(_ reader: ObjectReader, recordedAt timestamp: Int64) throws(FieldError) {
    let latest = timestamp + LimitPeriod.delayMilliseconds
    var periods: [LimitPeriod] = []
    let elements = try reader.elements("limits", atMost: Self.maximumPeriods) ?? []
    for (index, (value, path)) in elements.enumerated() {
      let element = try ObjectReader(value, path: path)
      let previous = periods.last?.from ?? 0
      let given = try element.integer("from", in: 0...Timestamp.latest)
      guard let from = given ?? (index == elements.count - 1 ? latest : nil) else {
        throw element.error("from", "Only the last limit may begin with the record.")
      }
      guard given == nil || from >= previous else { throw element.error("from", "No limit begins before the previous one.") }
      // No limit begins later than its record says, except by the difference of two brokers' clocks.
      let begins = max(min(from, latest + ApplicationStop.clockDifference), previous)
      let perTarget = try element.integer("perTarget", in: RateLimit.numbers)
      let perApplication = try element.integer("perApplication", in: RateLimit.numbers)
      let window = try element.integer("window", in: RateLimit.windows)
      var limit: RateLimit?
      if perTarget != nil || perApplication != nil {
        guard let window else { throw element.error("window", "A limit has a window, in milliseconds.") }
        limit = RateLimit(perTarget: perTarget, perApplication: perApplication, window: window)
      }
      guard let by = try element.text("by", longest: ApplicationStop.textBytes) else {
        throw element.error("by", "A limit says who set it.")
      }
      periods.append(LimitPeriod(from: begins, limit, by: by))
    }
    self.init(periods)
  }
}
