/** The lifecycles that ship, by name and version. */
import { LifecycleUnknown } from '../errors.ts'
import { document } from './document.ts'
import { hardened } from './hardened.ts'
import { leased } from './leased.ts'
import type { Lifecycle } from './lifecycle.ts'
import { standard } from './standard.ts'
import { task } from './task.ts'

/** Every lifecycle that ships. */
export const LIFECYCLES: readonly Lifecycle[] = [standard, hardened, leased, document, task]

/** Finds a lifecycle by name and version among those given; an unknown one is never guessed. */
export function findLifecycle(
  name: string,
  version: number,
  among: readonly Lifecycle[] = LIFECYCLES,
): Lifecycle {
  const found = among.find((own) => own.name === name && own.version === version)
  if (found === undefined) throw new LifecycleUnknown(name, version)
  return found
}
