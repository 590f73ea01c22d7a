import EventLoop
import JSON
import Operations
import Worker

/// `carillon dead-letters list` and `carillon dead-letters show`.
enum DeadLetterCommands {
  private typealias Settings = DeadLetterSettings

  static let list = Command(
    "dead-letters list", "counts the dead letters by reason and application",
    discussion:
      "Prints a line for each reason and application: the number of letters, how many of them are pending, redriven or discarded, and the age of the oldest and the newest. With --all each letter has a line of its own instead. With --json each line is an object. The exit code is 1 if there is none.",
    arguments: [Settings.letters],
    groups: [
      Settings.filterWithState, SettingGroup("List", [Settings.all]), AnswerSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("dead-letters list", "what there is"),
      Example("dead-letters list --reason BadTopic --app com.example.shop --all", "each letter of one kind"),
      Example("dead-letters list --from 1d --state pending --json", "what has come since yesterday, for a script"),
    ]
  ) { values in
    let (filter, now) = try begin(values)
    let printer = LetterPrinter(now: now, width: Terminal.width)
    let (isJSON, isAll) = (values[AnswerSettings.json], values[Settings.all])
    let survey = try await ReadingLog.with(values, "dead-letters", needing: \.deadLetters) { tool in
      try await tool.survey(letters: filter) { letter in
        guard isAll else { return }
        if isJSON { StandardOutput.json(printer.json(letter).text) } else { StandardOutput.line(printer.line(letter)) }
      }
    }
    let groups = survey.wanted.sorted()
    guard !groups.isEmpty else {
      say(nothing: filter, of: survey.all)
      return .answerIsNo
    }
    if !isAll, isJSON {
      for group in groups { StandardOutput.json(printer.json(group).text) }
    } else if !isAll {
      for line in printer.table(groups) { StandardOutput.line(line) }
    }
    return .done
  }

  static let show = Command(
    "dead-letters show", "shows dead letters in full",
    discussion:
      "Prints for each letter its reason, its state with the person and the time, its source, and its headers. Payloads, and headers that are not the contract's, may be private, and are only shown with --payload. A payload that did not fit into the letter is read from its source. With --json each letter is an object. The exit code is 1 if there is none.",
    arguments: [Settings.letters],
    groups: [
      Settings.filterWithState, SettingGroup("Show", [Settings.payload, Settings.limit]), AnswerSettings.group,
      ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("dead-letters show 3:1742", "one letter, by where it lies"),
      Example("dead-letters show 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11 --payload", "all of one request, with what it says"),
      Example("dead-letters show --reason Poison --state pending", "what could not be processed"),
    ]
  ) { values in
    let (filter, now) = try begin(values)
    let (limit, showsAll) = (values[Settings.limit], values[Settings.payload])
    let page = try await ReadingLog.with(values, "dead-letters", needing: \.deadLetters) {
      try await $0.show(letters: filter, limit: limit, withValues: showsAll)
    }
    let printer = LetterPrinter(now: now, width: Terminal.width)
    for (number, letter) in page.letters.enumerated() {
      if values[AnswerSettings.json] {
        StandardOutput.json(printer.json(letter, showsAll: showsAll).text)
      } else {
        if number > 0 { StandardOutput.line("") }
        for line in printer.text(letter, showsAll: showsAll) { StandardOutput.line(line) }
      }
    }
    if page.further > 0 {
      StandardError.line("… and \(TerminalText.count(page.further, "further letter")): --limit shows more of them, a filter others")
    }
    guard page.letters.isEmpty else { return .done }
    say(nothing: filter, of: page.all)
    return .answerIsNo
  }

  private static func begin(_ values: SettingValues) throws(UsageError) -> (LetterFilter, Int64) {
    let now = WallClock.milliseconds()
    var filter = try Settings.filter(values, now: now)
    filter.standing = values[Settings.state]
    return (filter, now)
  }

  // MARK: Nothing found

  /// Says that a filter selects no letter.
  static func say(nothing filter: LetterFilter, of all: Int) {
    guard all > 0 else {
      return StandardError.line("there are no dead letters" + (filter.time.from == nil ? "" : " since then"))
    }
    StandardError.line(
      "that \(all == 1 ? "does not select the one dead letter" : "selects none of the \(all) dead letters"): 'carillon dead-letters list' shows what there is"
    )
  }
}
