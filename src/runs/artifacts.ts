/**
 * Artifacts of a run, as nodes and work items see them. A content is stored by name and hash before
 * an event refers to it. Artifacts that a work item reads become its inputs. Artifacts that it
 * writes become events when the item finishes.
 *
 * Names that begin with `run:`, `result:` or `param:` are reserved for the engine.
 */
import { encode, type JsonBounds } from '../core/canonical-json.ts'
import { name as checkName, NAME_MAX } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import { ArtifactUnknown } from './errors.ts'
import { sha256Of } from './journal/hash.ts'
import type { Author } from './journal/journal.ts'
import type { ArtifactHandle } from './node-context.ts'
import type { RunLog } from './run-log.ts'

/** Bounds of JSON that is stored as an artifact. */
export const ARTIFACT_JSON: JsonBounds = { depthMax: 64, bytesMax: 64 * 1024 * 1024 }
const CONTENT_BYTES_MAX = 256 * 1024 * 1024
const RESERVED = /^(run|result|param):/

/** A stored content that is not an artifact yet. */
export interface Output {
  readonly path: string
  readonly sha256: string
  readonly schemaId: string | undefined
}

/** The reads and writes of one execution of a work item. */
export interface ItemScope {
  readonly key: string
  readonly author: Author
  readonly reads: Map<string, string>
  readonly writes: Map<string, Output>
}

export interface ArtifactParts {
  readonly log: RunLog
  readonly worker: string
  readonly scope: () => ItemScope | undefined
  /** The author of writes outside of work items. */
  readonly author: () => Author
  readonly assertLive: () => void
}

/** Returns the handle of an artifact. Throws `CommandInvalid` if the name is reserved. */
export function artifactOf(parts: ArtifactParts, name: string): ArtifactHandle {
  if (typeof name === 'string' && RESERVED.test(name)) {
    throw new CommandInvalid('artifact', 'must not begin with run:, result: or param:')
  }
  return new RunArtifact(parts, name)
}

export function isArtifact(value: unknown): value is ArtifactHandle {
  return value instanceof RunArtifact
}

/** Returns the commands that make a content an artifact and resolve its damage issue. */
export function writeCommands(
  run: Run,
  name: string,
  output: Output,
  by: { readonly worker: string; readonly workItem?: string },
): RunCommand[] {
  const { schemaId, ...stored } = output
  const schema = schemaId === undefined ? {} : { schemaId }
  const issue = damageIssue(name)
  const isOpen = entryOf(run.issues, issue)?.status === 'open'
  return [
    { kind: 'write-artifact', name, ...stored, ...by, ...schema },
    ...(isOpen ? [{ kind: 'resolve-issue', issue } as const] : []),
  ]
}

/** Returns the name of the issue about a missing or changed content, cut to the longest name. */
export function damageIssue(name: string): string {
  return `ArtifactDamaged:${name}`.slice(0, NAME_MAX)
}

interface WriteOptions {
  readonly schemaId?: string
}

const WRITE: FieldChecks<WriteOptions> = { schemaId: checkName }

class RunArtifact implements ArtifactHandle {
  readonly name: string
  readonly #parts: ArtifactParts

  constructor(parts: ArtifactParts, name: string) {
    this.#parts = parts
    this.name = name
  }

  get sha256(): string | undefined {
    const own = this.#parts.scope()?.writes.get(this.name)
    return own?.sha256 ?? entryOf(this.#parts.log.run.artifacts_index, this.name)?.sha256
  }

  async read(): Promise<Uint8Array> {
    const { log, scope, assertLive } = this.#parts
    assertLive()
    const sha256 = this.sha256
    if (sha256 === undefined) throw new ArtifactUnknown(log.run.run_id, this.name)
    const item = scope()
    // An artifact that the item itself wrote is not an input.
    if (item !== undefined && !item.writes.has(this.name) && !item.reads.has(this.name)) {
      item.reads.set(this.name, sha256)
    }
    return log.writer.readArtifact(this.name, sha256)
  }

  async text(): Promise<string> {
    return new TextDecoder().decode(await this.read())
  }

  async json<T>(): Promise<T> {
    return JSON.parse(await this.text()) as T
  }

  async writeJson(value: unknown, options: WriteOptions = {}): Promise<void> {
    return this.write(encode(value, ARTIFACT_JSON), options)
  }

  async write(content: Uint8Array | string, options: WriteOptions = {}): Promise<void> {
    checkFields(options, WRITE, { what: 'options' })
    const { schemaId } = options
    const { log, worker, scope, author, assertLive } = this.#parts
    assertLive()
    const bytes = bytesOf(content)
    const item = scope()
    if (item === undefined && this.#isThere(bytes, schemaId)) return
    const stored = await log.writer.writeArtifact(this.name, bytes)
    const output = { ...stored, schemaId }
    assertLive()
    if (item !== undefined) item.writes.set(this.name, output)
    else await log.applyCommand(author(), ...writeCommands(log.run, this.name, output, { worker }))
  }

  /** A node that is called again writes the same content again, which needs no event. */
  #isThere(bytes: Uint8Array, schemaId: string | undefined): boolean {
    const now = entryOf(this.#parts.log.run.artifacts_index, this.name)
    return (
      now !== undefined &&
      now.work_item === null &&
      now.stale_because === null &&
      now.schema_id === (schemaId ?? null) &&
      now.sha256 === sha256Of(bytes)
    )
  }
}

function bytesOf(content: Uint8Array | string): Uint8Array {
  if (typeof content !== 'string' && !(content instanceof Uint8Array)) {
    throw new CommandInvalid('content', 'must be a text or bytes')
  }
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  if (bytes.length <= CONTENT_BYTES_MAX) return bytes
  throw new CommandInvalid('content', `must not be larger than ${CONTENT_BYTES_MAX} bytes`)
}
