import { violationsOf } from './violations.ts'

/** No attempt was taken from its holder before its time. */
export const leasesRanOut = violationsOf({
  name: 'leases-ran-out',
  promise: 'P7',
  says: 'No lease was taken back before it had run out.',
})
