/**
 * Who is told when jobs end or are parked (003: the API is told of success and failure): a function
 * of the user's, or a receiver that is sent a signed request (`webhook.ts`). Only jobs whose kinds
 * ask for it (`notify: true`) leave notices; a dispatcher delivers them as it does effects.
 */
import type { Clock } from '../../core/ports.ts'
import { NOTICE, type Notice } from '../../stores/notices.ts'
import type { JobDefinition } from '../define-job.ts'
import { type Delivery, type EffectDefinition, effectsOf } from './effects.ts'
import { openWebhook, type WebhookOptions } from './webhook.ts'

/** Is told of a job that ended or was parked; tried again where it throws. */
export type NotifyFunction = (notice: Notice, delivery: Omit<Delivery, 'payload'>) => unknown

/** A function, or where to send a request. */
export type NotifyOptions = NotifyFunction | WebhookOptions

/** The notices as a dispatcher sees them: a kind of job with one effect. */
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
