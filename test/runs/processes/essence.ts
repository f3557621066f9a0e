// What two runs of the same story must have in common, however often they were killed.
import type { Run } from 'pawl/runs'

/** The run without ids, times and counts of attempts, which a crash may change. */
export function essenceOf(run: Run): object {
  const { last_seq: _seq, fix_attempts: _fixes, validation, ...rest } = run
  const strip = (record: Readonly<Record<string, object>>, ...names: string[]) =>
    Object.fromEntries(
      Object.entries(record).map(([key, value]) => [
        key,
        Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name))),
      ]),
    )
  return {
    ...rest,
    validation: validation?.ok,
    artifacts_index: strip(rest.artifacts_index, 'ts', 'writer_worker'),
    work_items: strip(rest.work_items, 'started_at', 'finished_at', 'attempts', 'worker'),
    issues: strip(rest.issues, 'opened_at', 'resolved_at'),
  }
}
