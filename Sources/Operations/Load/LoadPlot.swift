import Glibc

/// A plot of lines as SVG. The lines differ in their dashes and not only in their colour, so that it can be printed in black and white.
struct LoadPlot {
  struct Line {
    var name: String
    /// Points in the order of x; a missing y interrupts the line.
    var points: [(x: Double, y: Double?)]
  }

  var title: String
  var xLabel: String
  var yLabel: String
  /// Whether each step of the y axis is ten times the one before.
  var isLogarithmic = false
  /// Marks of the x axis with their words; nil for round numbers.
  var xMarks: [(x: Double, text: String)]?
  var lines: [Line]

  private static let (width, left, right, bottom, plotHeight) = (860.0, 70.0, 20.0, 48.0, 216.0)
  private static let (legendColumns, legendLeft, legendRow) = (4, 100.0, 18.0)
  private static let strokes = [
    "stroke=\"#000\" stroke-width=\"1.6\"", "stroke=\"#06c\" stroke-width=\"1.6\" stroke-dasharray=\"7 3\"",
    "stroke=\"#b30\" stroke-width=\"1.8\" stroke-dasharray=\"2 3\"", "stroke=\"#777\" stroke-width=\"1.4\" stroke-dasharray=\"10 3 2 3\"",
    "stroke=\"#070\" stroke-width=\"3\" stroke-dasharray=\"1 5\"", "stroke=\"#808\" stroke-width=\"2.6\" stroke-dasharray=\"12 5\"",
  ]

  /// The plot as an `svg` element.
  var svg: String {
    let all = lines.flatMap(\.points)
    let values = all.compactMap(\.y)
    guard let lastX = all.map(\.x).max(), let highest = values.max() else { return "<p>\(title): nothing was measured.</p>" }
    let firstX = all.map(\.x).min() ?? 0
    let axis = Axis(highest: highest, lowest: values.filter { $0 > 0 }.min() ?? 1, isLogarithmic: isLogarithmic)
    func x(_ value: Double) -> Double {
      Self.left + (lastX > firstX ? (value - firstX) / (lastX - firstX) : 0) * (Self.width - Self.left - Self.right)
    }
    let top = Self.legendRow * Double((lines.count - 1) / Self.legendColumns + 1) + 18
    let height = top + Self.plotHeight + Self.bottom
    func y(_ value: Double) -> Double { height - Self.bottom - axis.place(of: value) * Self.plotHeight }
    func line(_ from: Double, _ to: Double, at y: Double, _ attributes: String) -> String {
      let (from, to, y) = (Self.short(from), Self.short(to), Self.short(y))
      return "<line x1=\"\(from)\" x2=\"\(to)\" y1=\"\(y)\" y2=\"\(y)\" \(attributes)/>"
    }
    func label(_ x: Double, _ y: Double, _ text: String, anchor: String = "start") -> String {
      "<text x=\"\(Self.short(x))\" y=\"\(Self.short(y))\" text-anchor=\"\(anchor)\">\(text)</text>\n"
    }
    var text = "<svg viewBox=\"0 0 \(Self.short(Self.width)) \(Self.short(height))\" role=\"img\" aria-label=\"\(title)\">\n"
    for mark in axis.marks {
      text += line(Self.left, Self.width - Self.right, at: y(mark), "class=\"grid\"")
      text += label(Self.left - 6, y(mark) + 4, Self.short(mark), anchor: "end")
    }
    for mark in xMarks ?? Axis(highest: lastX, lowest: 0, isLogarithmic: false).marks.map({ ($0, Self.short($0)) })
    where mark.x >= firstX && mark.x <= lastX {
      text += label(x(mark.x), height - Self.bottom + 18, mark.text, anchor: "middle")
    }
    text += label(Self.width / 2, height - 8, xLabel, anchor: "middle") + label(0, 14, yLabel)
    for (index, curve) in lines.enumerated() {
      let stroke = Self.strokes[index % Self.strokes.count]
      text += "<path d=\"\(path(curve, x, y))\" fill=\"none\" \(stroke)/>\n"
      let (row, column) = index.quotientAndRemainder(dividingBy: Self.legendColumns)
      let x = Self.legendLeft + Double(column) * (Self.width - Self.legendLeft) / Double(Self.legendColumns)
      let y = 10 + Self.legendRow * Double(row)
      text += line(x, x + 36, at: y, stroke) + label(x + 42, y + 4, curve.name)
    }
    return text + "</svg>"
  }

  private func path(_ line: Line, _ x: (Double) -> Double, _ y: (Double) -> Double) -> String {
    var (path, isDrawing) = ("", false)
    for point in line.points {
      guard let value = point.y else {
        isDrawing = false
        continue
      }
      path += "\(isDrawing ? "L" : "M")\(Self.short(x(point.x))) \(Self.short(y(value)))"
      isDrawing = true
    }
    return path
  }

  /// A number without needless digits.
  static func short(_ value: Double) -> String {
    let rounded = (value * 100).rounded() / 100
    return rounded == rounded.rounded() && abs(rounded) < 1e15 ? String(Int64(rounded)) : "\(rounded)"
  }

  /// The marks of an axis, and the places of values on it.
  private struct Axis {
    let marks: [Double]
    private let bounds: (lowest: Double, highest: Double)
    private let isLogarithmic: Bool

    init(highest: Double, lowest: Double, isLogarithmic: Bool) {
      self.isLogarithmic = isLogarithmic
      guard !isLogarithmic else {
        var (first, last) = (1.0, 1.0)
        while first > lowest, first > 1e-6 { first /= 10 }
        while last < highest, last < 1e12 { last *= 10 }
        if last <= first { last = first * 10 }
        bounds = (first, last)
        marks = Array(sequence(first: first) { $0 * 10 <= last * 1.01 ? $0 * 10 : nil })
        return
      }
      var step = 1e-6
      let steps = [1.0, 2, 5]
      var place = 0
      while highest / (step * steps[place]) > 6 {
        place += 1
        if place == steps.count { (place, step) = (0, step * 10) }
      }
      step *= steps[place]
      let count = max(1, Int((highest / step).rounded(.up)))
      bounds = (0, Double(count) * step)
      marks = (0...count).map { Double($0) * step }
    }

    func place(of value: Double) -> Double {
      guard isLogarithmic else { return value / bounds.highest }
      return log10(max(value, bounds.lowest) / bounds.lowest) / log10(bounds.highest / bounds.lowest)
    }
  }
}
