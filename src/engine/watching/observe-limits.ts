/** Reports changes of limits by this process as events. */
import type { LimitRecord, LimitTables } from '../../stores/contract/limits.ts'
import type { Watch } from './observe-store.ts'

/** Returns the tables; each change is also emitted as an event. */
export function observeLimits(limits: LimitTables, { worker, observe }: Watch): LimitTables {
  const note = (record: LimitRecord | undefined) => {
    if (record !== undefined) observe({ type: 'limit', worker, record })
    return record
  }
  const observed: Partial<LimitTables> = {
    async declare(declarations) {
      const declared = await limits.declare(declarations)
      for (const { record } of declared) note(record)
      return declared
    },
    set: async (...asked) => note(await limits.set(...asked)),
    reset: async (...asked) => note(await limits.reset(...asked)),
  }
  return new Proxy(limits, {
    get(target, name) {
      if (Object.hasOwn(observed, name)) return observed[name as keyof LimitTables]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
