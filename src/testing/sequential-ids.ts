import type { IdSource } from '../core/ports.ts'

/** Ids in the form of UUIDs of version 7 that count from 1, so that tests are easy to read. */
export class SequentialIds implements IdSource {
  #last = 0

  next(): string {
    this.#last++
    return `00000000-0000-7000-8000-${this.#last.toString(16).padStart(12, '0')}`
  }
}
