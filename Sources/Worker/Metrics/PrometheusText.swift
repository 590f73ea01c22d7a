/// Prometheus' text format, version 0.0.4.
enum PrometheusText {
  static func histogram(_ name: String, _ labels: [(String, String)], _ bounds: [Double], _ reading: MetricReading) -> String {
    var text = ""
    var count = 0
    for (index, bound) in (bounds + [.infinity]).enumerated() {
      count += reading.counts[index]
      text += "\(name)_bucket\(self.labels(labels + [("le", number(bound))])) \(count)\n"
    }
    return text + "\(name)_sum\(self.labels(labels)) \(number(reading.value))\n\(name)_count\(self.labels(labels)) \(count)\n"
  }

  static func labels(_ pairs: [(String, String)]) -> String {
    pairs.isEmpty ? "" : "{" + pairs.map { "\($0)=\"\(escaped($1, quotes: true))\"" }.joined(separator: ",") + "}"
  }

  static func number(_ value: Double) -> String {
    if value == .infinity { return "+Inf" }
    if value == -.infinity { return "-Inf" }
    if value.isNaN { return "NaN" }
    return Int64(exactly: value).map(String.init) ?? String(value)
  }

  static func escaped(_ text: String, quotes: Bool) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\"" where quotes: escaped += "\\\""
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
