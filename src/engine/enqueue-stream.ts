/**
 * Enqueues the entries of a stream in batches. The stream is read only as fast as batches are
 * written, and a batch is bounded in entries and in bytes, so memory does not grow with the stream.
 */
import { abortSignal, callable, count } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import type { EnqueueItem } from '../stores/contract/store.ts'
import { OutcomeUnknown } from '../stores/errors.ts'
import { type EnqueueEntry, type EnqueueParts, enqueueItems, itemBy } from './enqueueing.ts'
import { EnqueueInterrupted } from './errors.ts'
import type { AnyJob } from './job-types.ts'
import type { EnqueueOptions } from './options.ts'

/** One job of `enqueueMany`: its input and its options. */
export interface JobEntry<Input = unknown> extends Omit<EnqueueOptions, 'tx'> {
  readonly input: Input
}

/** How many entries of a stream are enqueued. */
export interface EnqueuedCount {
  /** Entries, from the beginning of the stream; those of `skip` included. */
  readonly count: number
  /** Jobs that were created; the other entries had keys of jobs that existed. */
  readonly created: number
}

/** The options of `enqueueMany` for a stream. */
export interface StreamOptions {
  /**
   * The largest number of entries in one transaction, up to 10,000.
   * @defaultValue `1000`
   */
  readonly batchSize?: number
  /**
   * Leaves out so many entries, which an earlier call has enqueued.
   * @defaultValue `0`
   */
  readonly skip?: number
  /**
   * Called after each batch; the next one waits for it.
   * @defaultValue none
   */
  readonly onProgress?: (done: EnqueuedCount) => unknown
  /**
   * Ends the call after the current batch.
   * @defaultValue none
   */
  readonly signal?: AbortSignal
}

const BATCH = 1000
const BATCH_MAX = 10_000
/** A batch with this many characters of input is full. */
const BATCH_CHARACTERS = 4 * 1024 * 1024

const OPTIONS: FieldChecks<StreamOptions> = {
  batchSize: (value) => count(value, 1, BATCH_MAX),
  skip: (value) => count(value, 0, Number.MAX_SAFE_INTEGER),
  onProgress: callable,
  signal: abortSignal,
}

/** Enqueues all entries of a stream; throws `EnqueueInterrupted` if it ends early. */
export async function enqueueStream(
  parts: EnqueueParts,
  definition: AnyJob,
  entries: AsyncIterable<EnqueueEntry> | Iterable<EnqueueEntry>,
  options: StreamOptions,
): Promise<EnqueuedCount> {
  checkFields(options, OPTIONS, { what: 'options' })
  const { skip = 0, onProgress, signal } = options
  const done = { count: skip, created: 0 }
  let writing = 0
  try {
    signal?.throwIfAborted()
    for await (const batch of batchesOf(parts, definition, entries, options)) {
      writing = batch.length
      const results = await enqueueItems(parts.store, batch)
      writing = 0
      done.count += batch.length
      done.created += results.filter(({ kind }) => kind === 'created').length
      await onProgress?.({ ...done })
      signal?.throwIfAborted()
    }
  } catch (cause) {
    throw new EnqueueInterrupted(done, cause instanceof OutcomeUnknown ? writing : 0, cause)
  }
  return done
}

/** Items of one transaction each. If an entry is refused, those before it are still enqueued. */
async function* batchesOf(
  parts: EnqueueParts,
  definition: AnyJob,
  entries: AsyncIterable<EnqueueEntry> | Iterable<EnqueueEntry>,
  { batchSize = BATCH, skip = 0 }: StreamOptions,
): AsyncGenerator<EnqueueItem[]> {
  let batch: EnqueueItem[] = []
  let characters = 0
  let left = skip
  let refused: { readonly error: unknown } | undefined
  try {
    for await (const entry of entries) {
      if (left-- > 0) continue
      if (entry.signals !== undefined) {
        throw new CommandInvalid('signals', 'must not be part of a stream: pass an array of jobs')
      }
      const made = itemBy(parts, definition, entry)
      const item = made instanceof Promise ? await made : made
      batch.push(item)
      characters += item.input.length
      if (batch.length < batchSize && characters < BATCH_CHARACTERS) continue
      yield batch
      batch = []
      characters = 0
    }
  } catch (error) {
    refused = { error }
  }
  if (batch.length > 0) yield batch
  if (refused !== undefined) throw refused.error
}
