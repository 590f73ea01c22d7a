import Foundation
import JSON

/// The AsyncAPI document, and a judge of values by its schemas.
///
/// It knows the keywords that the document uses and reports the others, so that no rule goes unjudged. In its closed form it also
/// reports members that no schema mentions: what is written must be documented, though readers pass over what they do not know.
struct ContractDocument {
  let root: JSONValue

  init() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/Notifications/Contract/asyncapi.json")
    root = try JSONValue(parsing: String(decoding: try Data(contentsOf: path), as: UTF8.self))
  }

  subscript(path: String...) -> JSONValue? { path.reduce(root) { $0?[$1] } }

  /// What is wrong with a JSON text by the schema of this name; empty when nothing is.
  func faults(of text: String, as schema: String) -> [String] {
    guard let value = try? JSONValue(parsing: text) else { return ["no JSON: \(text)"] }
    return faults(of: value, as: schema)
  }

  func faults(of value: JSONValue, as schema: String) -> [String] {
    var judge = Judge(document: self)
    judge.judge(value, .object([.init(key: "$ref", value: .string("#/components/schemas/" + schema))]), at: "")
    judge.reportUnmentioned(value, at: "")
    return judge.faults
  }

  func resolve(_ reference: String) -> JSONValue? {
    reference.dropFirst(2).split(separator: "/").reduce(root) { $0?[String($1)] }
  }

  private struct Judge {
    let document: ContractDocument
    var faults: [String] = []
    /// Paths that a schema has mentioned, and paths whose members are free.
    var mentioned: Set<String> = []
    var free: Set<String> = []

    private static let ignored: Set<String> = ["description", "contentMediaType", "contentSchema"]

    mutating func judge(_ value: JSONValue, _ schema: JSONValue, at path: String) {
      for member in schema.members ?? [] {
        let rule = member.value
        switch member.key {
        case "$ref":
          guard let target = rule.stringValue.flatMap(document.resolve) else {
            faults.append("\(path): no schema \(rule.text)")
            continue
          }
          judge(value, target, at: path)
        case "allOf": for part in rule.elements ?? [] { judge(value, part, at: path) }
        case "oneOf": choose(value, rule, at: path) { $0 == 1 }
        case "anyOf": choose(value, rule, at: path) { $0 >= 1 }
        case "type": check(Self.type(of: value, is: rule.stringValue ?? ""), "is no \(rule.text)", path)
        case "const": check(value == rule, "is not \(rule.text)", path)
        case "enum": check((rule.elements ?? []).contains(value), "is none of \(rule.text)", path)
        case "required":
          for name in rule.elements ?? [] { check(value[name.stringValue ?? ""] != nil, "lacks \(name.text)", path) }
        case "properties":
          if (rule.members ?? []).isEmpty { continue }
          for property in rule.members ?? [] {
            mentioned.insert("\(path)/\(property.key)")
            if let inner = value[property.key] { judge(inner, property.value, at: "\(path)/\(property.key)") }
          }
        case "additionalProperties":
          for property in value.members ?? [] {
            mentioned.insert("\(path)/\(property.key)")
            judge(property.value, rule, at: "\(path)/\(property.key)")
          }
        case "items": for (index, element) in (value.elements ?? []).enumerated() { judge(element, rule, at: "\(path)/\(index)") }
        case "minItems": if let elements = value.elements { check(elements.count >= Int(rule.integerValue ?? 0), "has too few", path) }
        case "maxItems": if let elements = value.elements { check(elements.count <= Int(rule.integerValue ?? 0), "has too many", path) }
        case "maxProperties": if let members = value.members { check(members.count <= Int(rule.integerValue ?? 0), "has too many", path) }
        case "minLength":
          if let text = value.stringValue { check(text.unicodeScalars.count >= Int(rule.integerValue ?? 0), "is too short", path) }
        case "maxLength":
          if let text = value.stringValue { check(text.unicodeScalars.count <= Int(rule.integerValue ?? 0), "is too long", path) }
        case "minimum": if let number = value.doubleValue { check(number >= rule.doubleValue ?? 0, "is too small", path) }
        case "maximum": if let number = value.doubleValue { check(number <= rule.doubleValue ?? 0, "is too large", path) }
        case "exclusiveMinimum": if let number = value.doubleValue { check(number > rule.doubleValue ?? 0, "is too small", path) }
        case "pattern":
          guard let text = value.stringValue else { continue }
          guard let pattern = try? Regex(rule.stringValue ?? "") else {
            faults.append("\(path): no pattern \(rule.text)")
            continue
          }
          check(text.contains(pattern), "does not match \(rule.text): \(text)", path)
        default:
          if !Self.ignored.contains(member.key) { faults.append("\(path): this judge does not know \(member.key)") }
        }
      }
      let names = Set((schema.members ?? []).map(\.key))
      if names.contains("type"), schema["type"]?.stringValue == "object", !names.contains("properties"),
        !names.contains("additionalProperties")
      {
        free.insert(path)
      }
    }

    private mutating func choose(_ value: JSONValue, _ schemas: JSONValue, at path: String, _ isEnough: (Int) -> Bool) {
      var fitting = 0
      for schema in schemas.elements ?? [] {
        var inner = Judge(document: document)
        inner.judge(value, schema, at: path)
        guard inner.faults.isEmpty else { continue }
        fitting += 1
        mentioned.formUnion(inner.mentioned)
        free.formUnion(inner.free)
      }
      check(isEnough(fitting), "fits \(fitting) of the alternatives", path)
    }

    private mutating func check(_ holds: Bool, _ fault: String, _ path: String) {
      if !holds { faults.append("\(path): \(fault)") }
    }

    /// Members of objects that a schema describes, but not these.
    mutating func reportUnmentioned(_ value: JSONValue, at path: String) {
      if free.contains(path) { return }
      for member in value.members ?? [] {
        let inner = "\(path)/\(member.key)"
        if mentioned.contains(inner) { reportUnmentioned(member.value, at: inner) } else { faults.append("\(inner): is not documented") }
      }
      for (index, element) in (value.elements ?? []).enumerated() { reportUnmentioned(element, at: "\(path)/\(index)") }
    }

    private static func type(of value: JSONValue, is type: String) -> Bool {
      switch (value, type) {
      case (.object, "object"), (.array, "array"), (.string, "string"), (.number, "number"), (.bool, "boolean"), (.null, "null"): true
      case (.number, "integer"): value.integerValue != nil
      default: false
      }
    }
  }
}
