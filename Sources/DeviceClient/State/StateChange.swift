internal import Notifications

/// A change of the state that must survive the end of the process. The changes of one batch become durable together.
enum StateChange: Sendable, Equatable {
  /// The device has taken an apns-id.
  case took(Name, at: Int64)
  /// The newest revision of an identifier.
  case noted(identifier: Name, revision: Name, at: Int64)
  /// A notification is the newest of its list, in place of an earlier one of its identifier.
  case listed(DeliveredNotification, isPending: Bool)
  /// The times of a notification that waits: see ``PendingTable``.
  case waiting(Name, anchor: Int64, after: Int64)
  /// Notifications have left a list.
  case unlisted([Name], isPending: Bool)
  /// A notification waits for the program's service extension, in place of an earlier one of its identifier.
  case extending(DeliveredNotification)
  /// Whether the program's service extension has been given a notification.
  case extensionBegan(Name, Bool)
  /// Notifications do not wait for the program's service extension any more.
  case extended([Name])
  /// The person has signed out, and what belongs to them is gone.
  case forgotPerson
  /// The newest removal of all notifications, by its revision.
  case floor(Name)
  /// The number at the application's icon.
  case badge(Int)
  /// What the person and the program have decided for the device.
  case registration(StoredRegistration)
  /// What the device tells the cluster of itself, for other processes: its settings and its categories.
  case hello(StoredRegistration)
  /// A command of another process is carried out.
  case carriedOut(Int64)
  /// What the person did, for the cluster, the program, or both.
  case response(StoredResponse)
  /// The device was unlocked, so no response waits for that any more.
  case released
  /// A content extension has handled a response, which goes nowhere.
  case withdrawn(String)
  /// A response that a content extension had goes to the cluster and the program, after the unlocking if it is locked.
  case forwarded(String, isUnanswered: Bool, isLocked: Bool)
  /// The program has taken a response.
  case told(String)
  /// The cluster has answered a response.
  case settled(String)
  /// Ids and revisions from before a time, and all but so many of the newest, need not be kept.
  case forgot(before: Int64, ids: Int, identifiers: Int)

  /// Whether notifications have come into a list, or have left one.
  var isOfLists: Bool {
    switch self {
    case .listed, .unlisted: true
    default: false
    }
  }

  /// About how many bytes it takes while it waits for the disk.
  var cost: Int {
    switch self {
    case .listed(let notification, _), .extending(let notification):
      notification.frame.payload.count + (notification.changed?.payload.count ?? 0) + 512
    case .response(let response):
      (response.frame.userText?.utf8.count ?? 0) + response.frame.receipt.utf8.count + response.notification.frame.payload.count + 512
    case .registration(let registration), .hello(let registration):
      (registration.settings?.count ?? 0) + (registration.categoriesFrame?.count ?? 0) + 128
    default: 128
    }
  }
}

/// A response with its notification, until the cluster and the program have taken it.
struct StoredResponse: Sendable, Equatable {
  /// What a content extension has to do with a response. The raw values are in the database.
  enum Stage: Int64, Sendable, CaseIterable {
    /// Nothing, or it has forwarded it.
    case forwarded
    /// It has it and has not answered.
    case held
    /// It had it, and the response was forwarded without its answer.
    case unanswered
  }

  var frame: ResponseFrame
  var notification: DeliveredNotification
  /// Whether the cluster has not answered it. One to a local notification is never sent.
  var isUnsent: Bool
  /// Whether the program's delegate has not taken it.
  var isUntold: Bool
  var stage = Stage.forwarded
  /// Whether it waits for the unlocking. Until then it is neither sent nor told.
  var isLocked = false
  /// The options of its action.
  var options: Set<NotificationAction.Option> = []

  /// The frame for the cluster.
  var sent: ResponseFrame {
    var sent = frame
    sent.isUnanswered = stage == .unanswered
    return sent
  }

  /// How the device carries out its action.
  func rule(in state: ApplicationState) -> ActionRule { ActionRule(frame.action, options, in: state) }

  /// The options as the database has them: their words with spaces between them.
  var optionsText: String { NotificationAction.Option.allCases.filter(options.contains).map(\.rawValue).joined(separator: " ") }

  /// Reads options from the database.
  static func options(_ text: String) -> Set<NotificationAction.Option> {
    Set(text.split(separator: " ").compactMap { NotificationAction.Option(rawValue: String($0)) })
  }
}

/// The durable state, as it is read at the start.
struct StoredState: Sendable, Equatable {
  /// An apns-id that was taken.
  struct Taken: Sendable, Equatable {
    var id: Name
    var at: Int64
  }

  /// The newest revision of an identifier.
  struct Newest: Sendable, Equatable {
    var identifier: Name
    var revision: Name
    var at: Int64
  }

  /// A notification that waits for the program's service extension.
  struct Extending: Sendable, Equatable {
    var notification: DeliveredNotification
    /// Whether the extension has been given it.
    var isBegun = false
  }

  /// The ids that were taken, the oldest first.
  var ids: [Taken] = []
  /// The newest revision of each identifier, the oldest first.
  var revisions: [Newest] = []
  /// The delivered notifications, the oldest first.
  var delivered: [DeliveredNotification] = []
  /// The notifications that wait, the oldest first.
  var pending: [PendingTable.Entry] = []
  /// The notifications that wait for the program's service extension, the oldest first.
  var extending: [Extending] = []
  /// The responses that the cluster or the program has not taken, the oldest first.
  var responses: [StoredResponse] = []
  /// The revision of the newest removal of all; nil: there was none.
  var floor: Name?
  /// The number at the application's icon.
  var badge = 0
  /// The clock of time intervals.
  var clock: ElapsedClock?
  /// The token of the file's device.
  var token: DeviceToken?
  /// The application of the file's device.
  var application: Name = ""
  /// What the person and the program have decided for the device.
  var registration = StoredRegistration()
  /// What the device has told the cluster of itself.
  var hello = StoredRegistration()
}

extension NotifyFrame {
  /// Reads a frame of the database, by the protocol's own rules; nil if the bytes are none. `jsonBytes` has its payload and trigger byte for byte.
  init?(stored bytes: [UInt8]) {
    guard case .notify(let frame)? = bytes.withUnsafeBytes({ try? ServerFrame($0) }) else { return nil }
    self = frame
  }
}
