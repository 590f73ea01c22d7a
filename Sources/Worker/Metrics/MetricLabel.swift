/// The spelling of label values, which is that of the names. Lower-case letters, digits and underscores.
public enum MetricLabel {
  /// Converts a word of the program to it: `slowConsumer` and `slow-consumer` become `slow_consumer`.
  public static func snakeCase(_ word: String) -> String {
    var label = ""
    for character in word {
      if character.isUppercase, !label.isEmpty { label += "_" }
      label += character == "-" || character == " " ? "_" : character.lowercased()
    }
    return label
  }
}
