import { damageOf } from '../mend.ts'
import type { JobCheck } from './check.ts'

/** A job that the engine has set aside waits for a repair. */
export const damageIsRepaired: JobCheck = {
  name: 'damage-is-repaired',
  promise: 'P15',
  says: 'No job waits for a repair because the engine found its row damaged.',
  look: (patient) => {
    const what = damageOf(patient)
    return what === undefined ? [] : [{ what }]
  },
}
