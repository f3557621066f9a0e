/** Who uses the dashboard, what they may do, and the time of the store. */
import { computed, effect, signal } from '@preact/signals'
import { type Answer, call, Refused, token } from './client.ts'

/** The caller as the server sees it; undefined until it is known. */
export const caller = signal<Answer<'whoAmI'> | undefined>(undefined)
/** Why the caller is not known; undefined while that is not clear. */
export const refusal = signal<Refused | undefined>(undefined)

export const canOperate = computed(() => hasRole('operate'))
export const isAdmin = computed(() => hasRole('admin'))
/** A caller without a token may choose the name of the operator. */
export const choosesName = computed(() => caller.value?.name === 'loopback')

function hasRole(role: string): boolean {
  const roles = caller.value?.roles ?? []
  return roles.includes('admin') || roles.includes(role)
}

const NAME = 'pawl.operator'
/** The name that the person last acted under, on this machine. */
export const operatorName = signal(localStorage.getItem(NAME) ?? '')

export function setOperatorName(name: string): void {
  operatorName.value = name
  localStorage.setItem(NAME, name)
}

/** Asks the server who the caller is, now and whenever the token changes. */
export function startSession(): void {
  effect(() => {
    void token.value
    void identify()
  })
}

async function identify(): Promise<void> {
  try {
    caller.value = await call('whoAmI', {})
    refusal.value = undefined
  } catch (error) {
    caller.value = undefined
    refusal.value = error instanceof Refused ? error : new Refused(0, UNKNOWN)
  }
}

const UNKNOWN = { title: 'The server does not answer', code: 'UNREACHABLE', hint: '' }

/** How far the time of the store is ahead of this machine's. */
const offsetMs = signal(0)
const local = signal(Date.now())
setInterval(() => {
  local.value = Date.now()
}, 1000)

/** The time of the store, in steps of a second. */
export const now = computed(() => local.value + offsetMs.value)

export function noteStoreTime(storeNow: number): void {
  const offset = storeNow - Date.now()
  // Small differences are the time of the request; following them would make times jump.
  if (Math.abs(offset - offsetMs.value) > 750) offsetMs.value = offset
}
