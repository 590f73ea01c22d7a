import Worker

/// What a load run reads from a worker's `/metrics`.
struct WorkerReading: Sendable, Hashable {
  /// When the process began, in seconds since 1970.
  var startedAt: Double
  /// The processor time that it has used since then, in seconds.
  var processorSeconds: Double
  /// The role, as the worker names it.
  var role = "worker"
  /// The histograms of ages.
  var ages: [LoadServers.Stage: LoadAges] = [:]
}

extension WorkerReading {
  /// Reads Prometheus' text format; nil if the process' start or its processor time is missing.
  init?(metrics text: UnsafeRawBufferPointer) {
    var (startedAt, processorSeconds): (Double?, Double?)
    var (role, histograms) = ("worker", [LoadServers.Stage: [Double: Double]]())
    for line in text.split(separator: UInt8(ascii: "\n")) {
      func isOf(_ name: String) -> Bool { name.utf8.count < line.count && zip(name.utf8, line).allSatisfy { $0 == $1 } }
      if isOf(MetricNames.processStart.name + " ") { startedAt = Self.number(line) }
      if isOf(MetricNames.processCPU.name + " ") { processorSeconds = Self.number(line) }
      if isOf(MetricNames.build.name + "{"), let label = Self.label("role", of: line), Self.isRole(label) {
        role = label.replacing("_", with: "-")
      }
      for stage in LoadServers.Stage.allCases where isOf(stage.metric + "_bucket") {
        let bound = Self.label("le", of: line).flatMap { $0 == "+Inf" ? .infinity : Double($0) }
        if let bound, bound >= 0, let number = Self.number(line) { histograms[stage, default: [:]][bound, default: 0] += number }
      }
    }
    guard let startedAt, let processorSeconds else { return nil }
    self.init(
      startedAt: startedAt, processorSeconds: processorSeconds, role: role, ages: histograms.mapValues(LoadAges.init(cumulative:)))
  }

  /// The number at the end of a line; nil if it is none, negative, or more than any worker counts.
  private static func number(_ line: Slice<UnsafeRawBufferPointer>) -> Double? {
    guard let space = line.lastIndex(of: UInt8(ascii: " ")) else { return nil }
    return Double(String(decoding: line[(space + 1)...], as: UTF8.self)).flatMap { (0...1e15).contains($0) ? $0 : nil }
  }

  /// The value of a label that needs no escapes.
  private static func label(_ name: String, of line: Slice<UnsafeRawBufferPointer>) -> String? {
    let text = String(decoding: line, as: UTF8.self)
    guard let start = text.firstRange(of: "\(name)=\"")?.upperBound, let end = text[start...].firstIndex(of: "\"") else { return nil }
    return String(text[start..<end])
  }

  /// The role becomes a word of the report, so it must not be any text.
  private static func isRole(_ text: String) -> Bool {
    (1...32).contains(text.utf8.count) && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "_") }
  }
}

extension LoadServers.Stage {
  /// The name of the workers' histogram.
  var metric: String {
    switch self {
    case .transformed: MetricNames.transformed.name
    case .sent: MetricNames.sentAfter.name
    }
  }
}
