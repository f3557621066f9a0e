/**
 * Notices: messages about jobs that ended or were parked (R3 asks that the API learns of success
 * and failure). The receiver is a function, or an HTTP endpoint that gets a signed request
 * (`webhook.ts`). Only job types with `notify: true` produce notices. A dispatcher delivers them
 * like effects.
 */
import type { Clock } from '../../core/ports.ts'
import { NOTICE, type Notice } from '../../stores/notices.ts'
import type { JobDefinition } from '../define-job.ts'
import { type Delivery, type EffectDefinition, effectsOf } from './effects.ts'
import { openWebhook, type WebhookOptions } from './webhook.ts'

/** Receives the notice of a job that ended or was parked. If it throws, the notice is retried. */
export type NotifyFunction = (notice: Notice, delivery: Omit<Delivery, 'payload'>) => unknown

/** A function, or the address of an HTTP endpoint. */
export type NotifyOptions = NotifyFunction | WebhookOptions

/** The notices in the form that a dispatcher takes: a job type with one effect. */
export function noticesOf(
  notify: NotifyOptions,
  clock: Clock,
): Pick<JobDefinition, 'name' | 'effects'> {
  return { name: NOTICE, effects: new Map([[NOTICE, definitionOf(notify, clock)]]) }
}

function definitionOf(notify: NotifyOptions, clock: Clock): EffectDefinition {
  const deliver = ({ payload, ...delivery }: Delivery<Notice>) =>
    (notify as NotifyFunction)(payload, delivery)
  const effects = effectsOf({
    notify: typeof notify === 'function' ? deliver : openWebhook(notify, clock),
  })
  return effects.get('notify') as EffectDefinition
}
