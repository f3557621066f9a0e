/** A store in front of a store. */
import type { Store } from './store.ts'

/** The store with some of its verbs replaced. */
export function passing(store: Store, replaced: Partial<Store>): Store {
  const bound = new Map<PropertyKey, unknown>(Object.entries(replaced))
  return new Proxy(store, {
    get(target, name) {
      if (bound.has(name)) return bound.get(name)
      const value: unknown = Reflect.get(target, name, target)
      const given = typeof value === 'function' ? value.bind(target) : value
      bound.set(name, given)
      return given
    },
  })
}
