import JSON
import Kafka
import Notifications
import Worker

/// The published categories of applications, from the records of `notifications.categories`.
final class PublishedCategories: FollowedTable {
  /// Maximum number of applications with published categories.
  static let maximum = 4_096
  /// Maximum bytes of their categories, as JSON.
  static let maximumBytes = 64 << 20

  /// A published category.
  struct Published {
    let category: NotificationCategory
    /// The category as JSON, for the devices, which do not know it.
    let json: [UInt8]
  }

  private struct Application {
    let name: [UInt8]
    let categories: [Published]

    var bytes: Int { categories.reduce(0) { $0 + $1.json.count } }
  }

  let topic: String
  /// By the name hashes of the applications.
  private var applications: [UInt64: Application] = [:]
  private var bytes = 0

  init(topic: String) { self.topic = topic }

  func take(_ record: RecordView) -> String? { take(key: record.key, value: record.value) }

  /// Takes a record: the categories of an application, or that it has none.
  func take(key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?) -> String? {
    guard let key, ApplicationStops.isApplication(key) else { return ApplicationStops.nameRule }
    let hash = NameHash.hash(key)
    guard let value else {
      set(nil, at: hash)
      return nil
    }
    guard applications[hash] != nil || applications.count < Self.maximum else {
      return "There are more than \(Self.maximum) applications with published categories."
    }
    do throws(FieldError) {
      let categories = try ApplicationCategories(json: value).categories.map { category in
        var json = JSONWriter(capacity: 512)
        category.write(to: &json)
        return Published(category: category, json: json.withUnsafeBytes(Array.init))
      }
      let application = Application(name: Array(key), categories: categories)
      guard bytes - (applications[hash]?.bytes ?? 0) + application.bytes <= Self.maximumBytes else {
        return "The published categories of all applications have more than \(Self.maximumBytes) bytes."
      }
      set(categories.isEmpty ? nil : application, at: hash)
      return nil
    } catch {
      return "\(error)"
    }
  }

  private func set(_ application: Application?, at hash: UInt64) {
    bytes += (application?.bytes ?? 0) - (applications[hash]?.bytes ?? 0)
    applications[hash] = application
  }

  func forget() { (applications, bytes) = ([:], 0) }

  /// The published category of this identifier; nil if the application has none, or the identifier is empty.
  func category(_ identifier: UnsafeRawBufferPointer, of application: UnsafeRawBufferPointer) -> Published? {
    guard !identifier.isEmpty, !applications.isEmpty, let found = applications[NameHash.hash(application)],
      application.elementsEqual(found.name)
    else { return nil }
    return found.categories.first { $0.category.identifier.equals(identifier) }
  }
}
