/**
 * The fields of a form, made of the JSON Schema of a signal, and the payload that they are filled
 * in with. A schema that is more than one flat object has no form: its payload is written as JSON.
 */

export interface FormField {
  readonly name: string
  readonly label: string
  readonly says: string | undefined
  readonly kind: 'text' | 'number' | 'flag' | 'choice'
  readonly choices: readonly string[]
  readonly isRequired: boolean
  /** Only whole numbers. */
  readonly isWhole: boolean
}

/** What the person has written, by the names of fields; under `''` the payload as JSON. */
export type Written = Readonly<Record<string, string>>

interface Part {
  readonly type?: unknown
  readonly title?: unknown
  readonly description?: unknown
  readonly enum?: unknown
}

const FIELDS_MAX = 30
const KINDS: Readonly<Record<string, FormField['kind']>> = {
  string: 'text',
  number: 'number',
  integer: 'number',
  boolean: 'flag',
}

/** The fields; undefined if the schema has a part that is no simple field. */
export function fieldsOf(schema: unknown): readonly FormField[] | undefined {
  const { type, properties, required } = asRecord(schema)
  const entries = Object.entries(asRecord(properties))
  if (type !== 'object' || entries.length === 0 || entries.length > FIELDS_MAX) return undefined
  const names: readonly unknown[] = Array.isArray(required) ? required : []
  const fields = entries.map(([name, part]) => fieldOf(name, asRecord(part), names.includes(name)))
  return fields.every((field) => field !== undefined) ? (fields as FormField[]) : undefined
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isRecord ? (value as Readonly<Record<string, unknown>>) : {}
}

function fieldOf(name: string, part: Part, isRequired: boolean): FormField | undefined {
  const { type, title, description } = part
  const listed = Array.isArray(part.enum) ? part.enum : []
  const areTexts = listed.length > 0 && listed.every((one) => typeof one === 'string')
  const kind = areTexts ? 'choice' : listed.length > 0 ? undefined : KINDS[String(type)]
  if (kind === undefined) return undefined
  return {
    name,
    label: typeof title === 'string' && title !== '' ? title : name,
    says: typeof description === 'string' ? description : undefined,
    kind,
    choices: areTexts ? (listed as string[]) : [],
    isRequired,
    isWhole: type === 'integer',
  }
}

/** The payload, or what is wrong with what is written. */
export type Filled = { readonly payload: unknown } | { readonly fault: string }

export function payloadOf(fields: readonly FormField[] | undefined, written: Written): Filled {
  if (fields === undefined) return jsonIn(written[''] ?? '')
  // No prototype: a field may have the name of one of its members.
  const payload = Object.create(null) as Record<string, unknown>
  for (const field of fields) {
    const text = written[field.name] ?? ''
    if (field.kind === 'flag') {
      if (text !== '' || field.isRequired) payload[field.name] = text === 'yes'
      continue
    }
    if (text === '') {
      if (field.isRequired) return { fault: `${field.label} is missing.` }
      continue
    }
    const value = field.kind === 'number' ? Number(text) : text
    if (typeof value === 'number' && !isNumber(value, field)) {
      return { fault: `${field.label} must be a ${field.isWhole ? 'whole ' : ''}number.` }
    }
    payload[field.name] = value
  }
  return { payload }
}

function isNumber(value: number, { isWhole }: FormField): boolean {
  return isWhole ? Number.isSafeInteger(value) : Number.isFinite(value)
}

function jsonIn(text: string): Filled {
  if (text.trim() === '') return { payload: null }
  try {
    return { payload: JSON.parse(text) }
  } catch {
    return { fault: 'The payload must be JSON.' }
  }
}
