import EventLoop
import JSON
import Notifications
import Operations
import Worker

/// `carillon categories publish` and `carillon categories list`.
enum CategoriesCommands {
  private static let file = Argument("FILE", "The categories as a JSON array; - reads standard input.", count: .one)
  private static let app = Setting<Name>.required("categories.app", .name("BUNDLE-ID"), "The application.")
  private static let only = Setting<Name?>("categories.only-app", flag: "app", .name("BUNDLE-ID"), "Only those of this application.")
  private static let isDryRun = Setting(
    "categories.dry-run", flag: "dry-run", .boolean, default: false, "Writes nothing: checks the file.")

  static let publish = Command(
    "categories publish", "publishes an application's categories, for devices that register none",
    discussion:
      "The file has all categories of the application, in the form of the device protocol. They replace those that were published before; an empty array removes all. Fan-out workers get them at once. A notification of such a category brings it along, unless its device has registered a category of the same identifier. Delivered notifications keep the actions that they had. Members and options that are not known are left out, and named on standard error. With --json the answer is an object.",
    arguments: [file], groups: [SettingGroup("Publish", [app, isDryRun]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [Example("categories publish categories.json --app com.example.shop", "all categories of the shop")]
  ) { values in
    let application = try ApplicationsCommands.checked(values[app])
    let categories = try read(values[file].first ?? "-")
    if !values[isDryRun] {
      try await ReadingLog.with(values, "categories", needing: \.categories) {
        try await $0.publish(categories: categories, of: application)
      }
    }
    if values[AnswerSettings.json] {
      StandardOutput.json(object(application, categories).text)
    } else {
      let count = TerminalText.count(categories.count, "category")
      StandardOutput.line("\(application)  \(count)\(values[isDryRun] ? " would be published; nothing was written" : "")")
    }
    return .done
  }

  static let list = Command(
    "categories list", "lists the published categories of applications",
    discussion:
      "Prints a line for each category: its application, its identifier, and its actions. With --json each application is an object, with all that is published for it. The exit code is 1 when there is none.",
    groups: [SettingGroup("List", [only]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [
      Example("categories list", "all of them"), Example("categories list --app com.example.shop --json", "those of one application"),
    ]
  ) { values in
    let entries = try await ReadingLog.with(values, "categories", needing: \.categories) { try await $0.categories() }.filter { entry in
      values[only].map { $0 == entry.application } ?? true
    }
    for entry in entries {
      if values[AnswerSettings.json] {
        StandardOutput.json(object(entry.application, entry.categories).text)
      } else {
        for category in entry.categories { StandardOutput.line("\(entry.application)  \(text(category))") }
      }
    }
    if entries.isEmpty {
      StandardError.line("no categories are published\(values[only].map { " for \(TerminalText.visible($0.text))" } ?? "")")
    }
    return entries.isEmpty ? .answerIsNo : .done
  }

  private static func read(_ file: String) throws -> [NotificationCategory] {
    let bytes = try Descriptor.contents(of: file, limit: ApplicationCategories.valueBytes)
    do {
      let json = try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
      guard json.elements != nil else { throw FieldError(field: "categories", rule: "The file is an array of categories.") }
      let categories = try DeviceShapes.categories(json)
      guard (ApplicationCategories(categories).value?.count ?? 0) <= ApplicationCategories.valueBytes else {
        throw FieldError(
          field: "categories", rule: "The categories of an application take at most \(ApplicationCategories.valueBytes) bytes.")
      }
      for path in IgnoredParts.paths(in: json, taken: array(categories), at: "categories").prefix(20) {
        StandardError.line("\(PrintedText.echo(file)): \(PrintedText.echo(path)) is not known here, or repeated, and is left out")
      }
      return categories
    } catch let error as FieldError {
      throw Failure(.wrongUsage, "\(PrintedText.echo(file)): \(error)")
    } catch {
      throw Failure(.wrongUsage, "\(PrintedText.echo(file)): it is no JSON: \(error)")
    }
  }

  private static func text(_ category: NotificationCategory) -> String {
    let actions = category.actions.map { TerminalText.visible($0.identifier.text) + ($0.textInput == nil ? "" : " (takes text)") }
    return TerminalText.visible(category.identifier.text) + (actions.isEmpty ? "" : ": " + actions.joined(separator: ", "))
  }

  private static func object(_ application: Name, _ categories: [NotificationCategory]) -> JSONValue {
    .object(["application": application, "categories": array(categories)])
  }

  private static func array(_ categories: [NotificationCategory]) -> JSONValue {
    categories.jsonBytes.withUnsafeBytes { try? JSONValue(parsing: $0) } ?? .array([])
  }
}
