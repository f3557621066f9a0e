/** Job types whose jobs wait for people. */
import { approval, defineJob, defineSignal, typed } from 'pawl'

const corrected = defineSignal({
  name: 'address-corrected',
  payload: typed<{ street: string; city: string; country: string; note?: string }>(),
  jsonSchema: {
    type: 'object',
    required: ['street', 'city', 'country'],
    properties: {
      street: { type: 'string', title: 'Street and number' },
      city: { type: 'string', title: 'City' },
      country: { type: 'string', title: 'Country', enum: ['DE', 'AT', 'CH'] },
      note: { type: 'string', title: 'Note', description: 'Printed on the label.' },
    },
  },
})

export const ASKING = {
  refund: defineJob({
    name: 'refund',
    queue: 'billing',
    input: typed<{ order: string; cents: number }>(),
    signals: [approval],
    run: async ({ waitForApproval }) => {
      const answer = await waitForApproval({ timeout: '7d' })
      return answer.kind
    },
  }),
  address: defineJob({
    name: 'ship-parcel',
    queue: 'mail',
    input: typed<{ order: string; name: string }>(),
    signals: [corrected],
    run: async ({ waitForSignal }) => {
      await waitForSignal(corrected)
    },
  }),
}
