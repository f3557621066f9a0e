import { damageOf } from '../mend.ts'
import type { JobCheck } from './check.ts'

export const damageIsRepaired: JobCheck = {
  name: 'damage-is-repaired',
  promise: 'P15',
  says: 'No job is set aside because the engine found it damaged.',
  look: (examined) => {
    const what = damageOf(examined)
    return what === undefined ? [] : [{ what }]
  },
}
