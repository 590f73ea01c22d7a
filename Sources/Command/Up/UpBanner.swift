import JSON
import Redis

/// The messages of `carillon up` when it is ready.
enum UpBanner {
  /// One line for programs.
  static func json(_ running: RunningCluster) -> String {
    let object = JSONValue.object([
      "kafka": running.kafka, "redis": running.redis, "devices": running.devices, "page": running.page, "requests": running.requests,
      "metrics": running.admin + "/metrics", "admin": running.admin, "pid": running.pid,
    ])
    return PrintedJSON.text(object.text) + "\n"
  }

  /// All addresses for people, without the password of its Redis, which would stay on the terminal.
  static func places(_ running: RunningCluster, isFound: Bool) -> String {
    let password = isFound ? RunningCluster.file.map { ", whose password is in \($0)" } : nil
    let redis = ((try? RedisAddress(running.redis))?.description ?? "") + (password ?? "")
    return """
        Kafka    \(running.kafka)
        Redis    \(redis)
        devices  \(running.devices)\(running.page.map { "\n  a page   \($0)" } ?? "")
        requests \(running.requests ?? "-")
        metrics  \(running.admin)/metrics
      """
  }

  /// All addresses, and what to type next.
  ///
  /// - Parameters:
  ///   - isFound: whether the tools find it without flags.
  ///   - keyFile: the key that signs its devices' credentials; nil if any device may connect.
  static func text(_ running: RunningCluster, isFound: Bool, keyFile: String?) -> String {
    let me = CommandLine.arguments.first ?? "carillon"
    let kafka = isFound ? "" : " --kafka \(running.kafka)"
    let devices = isFound ? "" : " --devices \(running.devices)"
    let device = "--token $(printf '0%.0s' $(seq 64)) --app com.example.shop --user ada"
    let credential = keyFile.map { " --credential $(\(me) token --key \($0) \(device))" } ?? ""
    let authorization = keyFile.map { "-H \"Authorization: Bearer $(\(me) token publisher --apps com.example.shop --key \($0))\" " } ?? ""
    let redis = isFound ? "" : "\n  status, lag and devices need --redis as well: 'carillon up --new --json' prints it with its password."
    return """

      Carillon is up. It keeps nothing: when it ends, everything in it is gone.
      Its Kafka keeps 5 MiB of each partition, and drops the oldest records beyond that.

      \(places(running, isFound: isFound).split(separator: "\n").joined(separator: "\n"))

      Type in other terminals\(isFound ? "; the tools find it by themselves" : "")

        a device     \(me) device\(devices) \(device)\(credential)
        a request    \(me) publish\(kafka) --target user:ada --app com.example.shop --title Order --body 'On its way' --collapse-id order-7
        with curl    curl \(authorization)-d '{"target":"user:ada","app":"com.example.shop","title":"Order"}' \(running.requests ?? "")
        the events   \(me) events\(kafka) --from beginning
        with kcat    echo '{"aps":{"alert":"Hello"}}' | kcat -P -b \(running.kafka) -X partitioner=murmur2_random -t notifications.requests -k user:ada -H apns-topic=com.example.shop

      Ctrl-C ends it.\(redis)

      """
  }
}
