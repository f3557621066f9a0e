import type { Store } from './contract/store.ts'

/** Returns a store with some verbs replaced; all others are passed on to `store`. */
export function wrapStore(store: Store, replaced: Partial<Store>): Store {
  const bound = new Map<PropertyKey, unknown>(Object.entries(replaced))
  return new Proxy(store, {
    get(target, name) {
      if (bound.has(name)) return bound.get(name)
      const value: unknown = Reflect.get(target, name, target)
      const member = typeof value === 'function' ? value.bind(target) : value
      bound.set(name, member)
      return member
    },
  })
}
