/** The built-in lifecycles, by name and version. */
import { LifecycleUnknown } from '../errors.ts'
import { document } from './document.ts'
import { hardened } from './hardened.ts'
import { leased } from './leased.ts'
import type { Lifecycle } from './lifecycle.ts'
import { standard } from './standard.ts'
import { task } from './task.ts'

/** The built-in lifecycles. */
export const LIFECYCLES: readonly Lifecycle[] = [standard, hardened, leased, document, task]

/** Returns the lifecycle with this name and version. Throws `LifecycleUnknown` if there is none. */
export function findLifecycle(
  name: string,
  version: number,
  among: readonly Lifecycle[] = LIFECYCLES,
): Lifecycle {
  const found = among.find((own) => own.name === name && own.version === version)
  if (found === undefined) throw new LifecycleUnknown(name, version)
  return found
}
