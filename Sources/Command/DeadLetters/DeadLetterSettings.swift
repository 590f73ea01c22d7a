import JSON
import Notifications
import Operations
import Worker

/// The settings of `carillon dead-letters …`.
enum DeadLetterSettings {
  static let letters = Argument(
    "LETTER",
    "Letters by their place in the dead letters (PARTITION:OFFSET, as 'list --all' prints it), or by apns-id. Absent: all that the filter selects.",
    count: .any)
  static let reasons = Setting<[Name]>(
    "dead-letters.reason", .repeated(.name("REASON,…")), default: [],
    "Letters of these reasons only: an APNs reason such as BadTopic, or Poison for records that could not be processed.")
  static let apps = Setting<[Name]>(
    "dead-letters.app", .repeated(.name("BUNDLE-ID,…")), default: [], "Letters of these applications only.")
  static let from = Setting<Moment?>("dead-letters.from", .past, "Letters written from this time on; nothing older is read.")
  static let to = Setting<Moment?>("dead-letters.to", .past, "Letters written before this time.")
  static let state = Setting<LetterStanding?>(
    "dead-letters.state", .choice, "Letters of this state only: pending ones were neither redriven nor discarded.")
  static let all = Setting(
    "dead-letters.all", .boolean, default: false,
    "Each letter in a line of its own instead of counts; the first column is the letter's name for other commands.")
  static let limit = Setting(
    "dead-letters.limit", .integer(1...1_000), default: 20, "Maximum number of letters shown; further ones are only counted.")
  static let payload = Setting(
    "dead-letters.payload", .boolean, default: false,
    "Shows payloads, and headers that are not the contract's, too: they may be private.")
  static let sets = Setting<[HeaderEdit]>(
    "dead-letters.set",
    .repeated(.header("HEADER=VALUE", allowed: "HEADER=VALUE, such as apns-topic=com.example.shop"), splitsAtCommas: false), default: [],
    "A header and its value, which replace those of the letter. A target or a valid apns-id only with --as-new.")
  static let unsets = Setting<[Name]>(
    "dead-letters.unset", .repeated(.name("HEADER,…")), default: [], "A header to remove, such as an invalid apns-id.")
  static let force = Setting(
    "dead-letters.force", .boolean, default: false, "Redrives the one LETTER that crashed its workers.")
  static let again = Setting(
    "dead-letters.again", .boolean, default: false, "Also letters that were redriven or discarded before; otherwise they are skipped.")
  static let everything = Setting(
    "dead-letters.everything", .boolean, default: false, "All letters: required without LETTER and without a filter.")
  static let wait = Setting<Duration?>(
    "dead-letters.wait", .duration(.seconds(1)...(.seconds(3_600))),
    "Follows the redriven requests, at most a thousand, for at most this time, and prints their outcomes. Devices that are not connected are not waited for."
  )
  static let note = Setting<String?>("dead-letters.note", .string("TEXT"), "The reason, for later readers of the letters.")

  static let filter = SettingGroup("Filter", [reasons, apps, from, to])
  static let filterWithState = SettingGroup("Filter", [reasons, apps, from, to, state])

  /// The filter for the letters.
  static func filter(_ values: SettingValues, now: Int64) throws(UsageError) -> LetterFilter {
    var filter = LetterFilter()
    for text in values[letters] {
      if let place = RecordPlace(text) {
        filter.places.insert(place)
      } else if let id = NotificationID(text) {
        filter.ids.insert(id)
      } else {
        throw UsageError(
          .wrongValue,
          "'\(PrintedText.echo(text))' is not a letter: it must be PARTITION:OFFSET, such as 3:1742 ('dead-letters list --all' prints them), or an apns-id"
        )
      }
    }
    (filter.reasons, filter.applications) = (Set(values[reasons]), Set(values[apps]))
    filter.time = try TimeRange(values, from: from, to: to, now: now)
    return filter
  }

  /// The changes of headers.
  static func edits(_ values: SettingValues) throws(UsageError) -> RequestEdits {
    do throws(RequestEdits.Mistake) {
      return try RequestEdits(
        set: values[sets].map { ($0.name, $0.value) }, removed: values[unsets], isNew: values[RunCommand.isNew])
    } catch {
      let reason =
        switch error {
        case .ofLetter(let name): "\(PrintedText.echo(name.text)) belongs to the dead letter and is removed in any case"
        case .origin: "only the cluster writes carillon-origin: --unset removes an invalid one"
        case .setAndRemoved(let name): "--set and --unset cannot both be about \(PrintedText.echo(name.text))"
        case .otherRequest(let name): "with another \(name) it is another request: add --as-new, which drops its first place"
        }
      throw UsageError(.contradiction, reason)
    }
  }
}

/// A header and its new value.
struct HeaderEdit: Sendable, Equatable {
  let name: Name
  let value: String

  /// Reads `NAME=VALUE`; nil without a name.
  init?(_ text: String) {
    guard let equals = text.firstIndex(of: "="), equals > text.startIndex, !text.utf8.contains(0) else { return nil }
    (name, value) = (Name(String(text[..<equals])), String(text[text.index(after: equals)...]))
  }
}

extension SettingKind where Value == HeaderEdit {
  static func header(_ placeholder: String, allowed: String) -> SettingKind {
    SettingKind(placeholder: placeholder, allowed: allowed, read: { HeaderEdit($0) }, write: { "\($0.name)=\($0.value)" })
  }
}
