// swift-tools-version: 6.2
import Foundation
import PackageDescription

/// Every target is compiled alike: warnings are errors, imports are internal unless said otherwise, and an
/// `async` function without isolation stays on its caller's executor, so that nothing hops off a lane's loop.
let settings: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  // The modules of a record's way are many and their functions small: a fifth of a worker's processor time is calls between modules.
  // The optimizer sees through `public` declarations alone. So what a record's way calls in another module is `public`, though no product
  // has that module. The modules that only commands call are `package`.
  .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

func module(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

func library(_ name: String, pkgConfig: String? = nil, package: String) -> Target {
  .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

func sample(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(name: name, dependencies: dependencies, path: "Sources/Samples/\(name)", swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

let package = Package(
  name: "carillon",
  products: [
    .executable(name: "carillon", targets: ["carillon"]),
    // What a program of a device is built on. It needs neither Kafka nor Redis.
    .library(name: "CarillonDevice", targets: ["DeviceClient", "EventLoop", "Extensions", "Notifications", "JSON"]),
    // What a team's own worker with its own service extensions is built on.
    .library(name: "Carillon", targets: ["Command", "Extensions", "Notifications", "Cryptography", "JSON"]),
  ],
  traits: [
    // What a sanitizer watches is the allocator that it brings, so builds with one go without.
    .trait(name: "Jemalloc", description: "The program allocates with jemalloc."),
    .default(enabledTraits: ["Jemalloc"]),
  ],
  targets: [
    // The C libraries as modules. Each has exactly one importer.
    library("CUV", pkgConfig: "libuv", package: "libuv1-dev"),
    library("CHTTPParser", package: "libhttp-parser-dev"),
    library("CWslay", package: "libwslay-dev"),
    library("COpenSSL", pkgConfig: "libssl", package: "libssl-dev"),
    // Its pkg-config has a macro, which SwiftPM refuses with a warning.
    library("CHiredis", package: "libhiredis-dev"),
    library("CRdKafka", pkgConfig: "rdkafka", package: "librdkafka-dev"),
    library("CJemalloc", pkgConfig: "jemalloc", package: "libjemalloc-dev"),
    library("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    library("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),

    module("EventLoop", ["CUV"]),
    module("JSON"),
    module("Cryptography", ["COpenSSL"]),

    module("HTTP", ["EventLoop", "Cryptography", "CHTTPParser", "CWslay", "CCurl"]),
    module("Kafka", ["EventLoop", "Cryptography", "CRdKafka"]),
    module("Redis", ["EventLoop", "Cryptography", "CHiredis"]),
    module("Notifications", ["Cryptography", "JSON"], exclude: ["Contract"]),
    // The only importer of the time zone database.
    module("Calendars", ["Notifications"]),

    // C, since its compiler embeds a file in no time. Swift compiles an array of its bytes, which takes half a minute.
    .target(name: "EmbeddedScripts", path: "Sources/Store/EmbeddedScripts", publicHeadersPath: "."),
    module(
      "Store", ["EmbeddedScripts", "EventLoop", "Cryptography", "JSON", "Redis", "Notifications"],
      exclude: ["EmbeddedScripts", "Scripts"]),

    .target(name: "EmbeddedWeb", path: "Sources/Web/EmbeddedWeb", publicHeadersPath: "."),
    module(
      "Web", ["EmbeddedWeb", "EventLoop", "Cryptography", "JSON"],
      exclude: ["EmbeddedWeb", "carillon.js", "deno.json", "extensions.js", "rules.js", "device"]),

    module("Worker", ["EventLoop", "Cryptography", "JSON", "HTTP", "Kafka", "Store", "Notifications"]),
    module("Extensions", ["EventLoop", "Cryptography", "JSON", "HTTP", "Notifications"]),
    module("DeviceClient", ["Extensions", "Calendars", "EventLoop", "Cryptography", "JSON", "HTTP", "Notifications", "CSQLite"]),

    module("Transform", ["Worker", "Extensions", "Store", "Calendars", "EventLoop", "Cryptography", "JSON", "Kafka", "Notifications"]),
    module(
      "FanOut",
      ["Worker", "Web", "Extensions", "Store", "Calendars", "EventLoop", "Cryptography", "JSON", "HTTP", "Kafka", "Notifications"]),
    module("Ingress", ["Worker", "Calendars", "EventLoop", "Cryptography", "JSON", "HTTP", "Kafka", "Notifications"]),
    module("Operations", ["Worker", "Store", "EventLoop", "JSON", "HTTP", "Kafka", "Notifications"]),

    module(
      "Command",
      [
        "Transform", "FanOut", "Ingress", "Operations", "Worker", "Web", "Extensions", "DeviceClient", "Calendars", "Store", "EventLoop",
        "Cryptography", "JSON", "HTTP", "Kafka", "Redis", "Notifications",
        .target(name: "CJemalloc", condition: .when(traits: ["Jemalloc"])),
      ]),
    .executableTarget(name: "carillon", dependencies: ["Command"], swiftSettings: settings),
    sample("EncryptedMessage", ["Command", "Extensions", "Cryptography", "JSON"]),
    sample("MyAttachment", ["Command", "Extensions", "JSON", "Notifications"]),
    .target(
      name: "DeviceTerminal", dependencies: ["DeviceClient", "Notifications"], path: "Sources/Samples/DeviceTerminal",
      swiftSettings: settings),
    sample("EventInvitation", ["DeviceTerminal", "DeviceClient", "EventLoop", "Notifications"]),
    sample("RedGreenNotifications", ["DeviceTerminal", "DeviceClient", "EventLoop", "Notifications"]),

    .target(name: "ThreadsLeft", path: "Tests/ThreadsLeft"),
    .target(name: "BrokerFaults", dependencies: ["CRdKafka"], path: "Tests/BrokerFaults"),
    .target(
      name: "TestSupport", dependencies: ["ThreadsLeft", "BrokerFaults", "EventLoop", "Kafka", "JSON", "HTTP", "Redis", "Notifications"],
      path: "Tests/TestSupport",
      swiftSettings: settings),
    tests("EventLoopTests", ["EventLoop", "TestSupport"]),
    tests("JSONTests", ["JSON", "TestSupport"]),
    tests("CryptographyTests", ["Cryptography", "TestSupport"]),
    tests("HTTPTests", ["HTTP", "Cryptography", "EventLoop", "TestSupport"]),
    tests("KafkaTests", ["Kafka", "EventLoop", "TestSupport"]),
    tests("RedisTests", ["Redis", "Cryptography", "EventLoop", "TestSupport"]),
    tests("NotificationsTests", ["Notifications", "JSON", "TestSupport"]),
    tests("CalendarsTests", ["Calendars", "Notifications", "TestSupport"], exclude: ["walk.py"]),
    tests("StoreTests", ["Store", "Redis", "EventLoop", "JSON", "Notifications", "TestSupport"]),
    tests("WebTests", ["Web", "EventLoop", "JSON"]),
    tests("WorkerTests", ["Worker", "Cryptography", "JSON", "EventLoop", "HTTP", "Kafka", "Notifications", "TestSupport"]),
    tests("ExtensionsTests", ["Extensions", "Cryptography", "EventLoop", "HTTP", "JSON", "Notifications", "TestSupport"]),
    tests(
      "TransformTests",
      [
        "Transform", "Extensions", "Worker", "Store", "Calendars", "Redis", "Kafka", "Cryptography", "EventLoop", "JSON", "Notifications",
        "TestSupport",
      ]),
    tests(
      "FanOutTests",
      [
        "FanOut", "Web", "Extensions", "Worker", "Store", "Redis", "Kafka", "Cryptography", "EventLoop", "HTTP", "JSON",
        "Notifications", "TestSupport",
      ]),
    tests(
      "IngressTests",
      ["Ingress", "Worker", "Calendars", "Cryptography", "EventLoop", "HTTP", "JSON", "Kafka", "Notifications", "TestSupport"]),
    tests(
      "OperationsTests",
      ["Operations", "Worker", "Calendars", "Store", "Redis", "Kafka", "EventLoop", "Notifications", "JSON", "TestSupport"]),
    .target(name: "KillingDisk", dependencies: ["CSQLite"], path: "Tests/KillingDisk"),
    .executableTarget(
      name: "KilledDevice", dependencies: ["DeviceClient", "KillingDisk", "Extensions", "Notifications", "EventLoop"],
      path: "Tests/KilledDevice", swiftSettings: settings),
    tests(
      "DeviceClientTests",
      [
        "KilledDevice", "DeviceClient", "Calendars", "Cryptography", "Extensions", "Notifications", "HTTP", "JSON", "EventLoop",
        "TestSupport",
      ]),
    .executableTarget(
      name: "OwnExtensions", dependencies: ["Command", "Extensions", "JSON"], path: "Tests/OwnExtensions", swiftSettings: settings),
    tests(
      "CommandTests",
      [
        "Command", "carillon", "EncryptedMessage", "MyAttachment", "EventInvitation", "RedGreenNotifications", "OwnExtensions",
        "KilledDevice", "DeviceTerminal", "DeviceClient", "Ingress", "Operations", "Worker", "Web", "TestSupport", "EventLoop", "Calendars",
        "JSON", "Cryptography", "Extensions", "Kafka", "Notifications", "Redis", "Store", "Transform",
      ]),
    // What only processes of their own can show. They are apart, since a process that is being started keeps listeners of the others open.
    tests("ProcessTests", ["Command", "Worker", "HTTP", "Kafka", "Cryptography", "EventLoop", "ThreadsLeft"]),
    tests(
      "ClusterTests", ["TestSupport", "DeviceClient", "Notifications", "Kafka", "EventLoop", "JSON"],
      exclude: ["Clients", "README.md", "former", "mutations", "nemesis"]),
  ],
  swiftLanguageModes: [.v6],
  cLanguageStandard: .gnu2x
)

// An image is built without the tests, so that an edit of one compiles nothing again.
if !FileManager.default.fileExists(atPath: Context.packageDirectory + "/Tests") {
  package.targets.removeAll { $0.type == .test || $0.path?.hasPrefix("Tests/") == true }
}
