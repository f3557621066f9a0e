/**
 * The types of values that can be stored. `src/core/values.ts` has the same rule for run time.
 *
 * TypeScript does not tell an instance of a class without methods from a plain object. At run time
 * it is stored, too, and read as a plain object.
 */

/** Replaces, in a compiler's message, a part that cannot be stored. */
export interface NotStorable<Why extends string> {
  readonly 'cannot be stored': Why
}

type Plain =
  | null
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: the result of a function that returns nothing
  | void
  | boolean
  | number
  | string
  | bigint
  | Date
  | Uint8Array

// biome-ignore lint/suspicious/noExplicitAny: any function
type AnyFunction = ((...values: any) => unknown) | (abstract new (...values: any) => unknown)

/**
 * `T`, if a value of that type can be stored. If not, the parts that cannot be stored are replaced
 * by `NotStorable`, so that `T` is not assignable to it.
 */
export type Storable<T> = unknown extends T
  ? T
  : T extends Plain
    ? T
    : T extends AnyFunction
      ? NotStorable<'a function; leave it out, or store what it returns'>
      : T extends symbol
        ? NotStorable<'a symbol; use a text'>
        : T extends ReadonlyMap<infer Key, infer Value>
          ? ReadonlyMap<Storable<Key>, Storable<Value>>
          : T extends ReadonlySet<infer Value>
            ? ReadonlySet<Storable<Value>>
            : { [Key in keyof T]: Storable<T[Key]> }

/** Accepts everything if `T` can be stored; otherwise only `Expected`, which names the reason. */
export type IfStorable<T, Expected> = [T] extends [Storable<T>] ? unknown : Expected
