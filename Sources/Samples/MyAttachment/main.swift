import Command
import Extensions
import JSON
import Notifications

/// The service extension of Apple's documentation that attaches a file (`UNNotificationServiceExtension`): the payload's member
/// `my-attachment` has the URL of what the notification comes with.
///
/// Where Apple's downloads the file itself, this one says where it is: the built-in extension `attach` behind it fetches the file, once for
/// all the notifications that come with it, and from allowed hosts alone.
struct MyAttachment: ServiceExtension {
  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    var content = bestAttempt.content
    guard let url = content[userInfo: "my-attachment"]?.stringValue else { return content }
    content.attachments.append(ContentAttachment(identifier: "myAttachment", url: url))
    content[userInfo: "my-attachment"] = nil
    return content
  }
}

await Program.main(extensions: [OwnExtension("my-attachment") { _ in MyAttachment() }])
