/** Wraps the schedules of a store, so that ticks and changes become events. */
import { ENGINE } from '../../stores/contract/requester.ts'
import type { Firing, ScheduleTables } from '../../stores/contract/schedules.ts'
import type { Requester } from '../../stores/contract/store.ts'

/** Returns the schedules; what each call has written is also passed to `onFiring`. */
export function observeSchedules(
  schedules: ScheduleTables,
  onFiring: (firing: Firing, requester: Requester) => void,
): ScheduleTables {
  const note = <T extends Firing>(requester: Requester, firing: T): T => {
    onFiring(firing, requester)
    return firing
  }
  return {
    get: (name) => schedules.get(name),
    list: (page) => schedules.list(page),
    records: (filter, page) => schedules.records(filter, page),
    recordOf: (name, tick) => schedules.recordOf(name, tick),
    faults: (name, ticksOf) => schedules.faults(name, ticksOf),
    restore: (name, ticksOf, by) => schedules.restore(name, ticksOf, by),
    nextLook: () => schedules.nextLook(),
    put: async (...asked) => note(ENGINE, await schedules.put(...asked)),
    fire: async (...asked) => note(ENGINE, await schedules.fire(...asked)),
    pause: async (...asked) => note(asked[1], await schedules.pause(...asked)),
    resume: async (...asked) => note(ENGINE, await schedules.resume(...asked)),
    run: async (...asked) => note(asked[1], await schedules.run(...asked)),
    backfill: async (...asked) => note(asked[3], await schedules.backfill(...asked)),
    remove: async (...asked) => note(ENGINE, await schedules.remove(...asked)),
  }
}
