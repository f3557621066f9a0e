/** Compares two states of a run or a job, path by path. */

/** `undefined` means that the path did not exist. */
export interface Change {
  readonly path: readonly string[]
  readonly before: unknown
  readonly after: unknown
}

export function changesBetween(before: object, after: object): Change[] {
  return diff([], before, after)
}

function diff(path: readonly string[], before: unknown, after: unknown): Change[] {
  if (!isRecord(before) || !isRecord(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }]
  }
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  return keys.flatMap((key) => diff([...path, key], own(before, key), own(after, key)))
}

function own(record: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
