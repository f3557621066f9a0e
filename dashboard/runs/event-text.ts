/** An event of a run in a few words. Pure. */
import type { RunEvent } from '../../src/core/run/events.ts'

export function saysOf(event: RunEvent): string {
  switch (event.type) {
    case 'RUN_CREATED':
      return event.data.origin === undefined
        ? `in ${event.data.state}`
        : `forked from ${event.data.origin.run_id} after event ${event.data.origin.seq}`
    case 'RUN_STATE_CHANGED':
      return `${event.data.from_state} → ${event.data.to_state}`
    case 'RESUME_REWIND':
      return `back: ${event.data.from_state} → ${event.data.to_state} (${event.data.reason})`
    case 'ARTIFACT_STALE':
      return `${event.data.name}, because ${event.data.because} changed`
    case 'WORK_ITEM_STARTED':
      return `${event.data.key} (${event.data.because})`
    case 'WORK_ITEM_FAILED':
      return `${event.data.key}: ${event.data.error}`
    case 'SECTION_STATE_CHANGED':
      return `${event.data.section}: ${event.data.from_state ?? '–'} → ${event.data.to_state}`
    case 'VALIDATION_RECORDED':
      return event.data.ok ? 'passed' : 'not passed'
    case 'ISSUE_OPENED':
      return `${event.data.issue}: ${event.data.message}`
    default:
      return plain(event.data)
  }
}

/** The first text of the data says what the event is about. */
function plain(data: Readonly<Record<string, unknown>>): string {
  for (const name of ['name', 'key', 'issue', 'reason', 'sha', 'attempt', 'bytes']) {
    const value = Object.hasOwn(data, name) ? data[name] : undefined
    if (value !== undefined) return String(value)
  }
  return ''
}
