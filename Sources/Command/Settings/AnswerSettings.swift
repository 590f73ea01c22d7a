import Worker

/// The form of a command's answer.
enum AnswerSettings {
  static let json = Setting(
    "json", .boolean, default: false, "Answer with one JSON object a line on standard output, and nothing else there.")

  static let group = SettingGroup("Answer", [json])
}
