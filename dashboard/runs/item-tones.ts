import type { Tone } from '../machine-data.ts'

/** The sign of each status of a work item. */
export const ITEM_TONES: Readonly<Record<string, Tone>> = {
  started: 'running',
  finished: 'succeeded',
  failed: 'failed',
}
