/// How the values of labels are written: like the names, in lower-case letters, digits and underscores.
public enum MetricLabel {
  /// A word of the program's own in that style: `slowConsumer` and `slow-consumer` become `slow_consumer`.
  public static func snakeCase(_ word: String) -> String {
    var label = ""
    for character in word {
      if character.isUppercase, !label.isEmpty { label += "_" }
      label += character == "-" || character == " " ? "_" : character.lowercased()
    }
    return label
  }
}
