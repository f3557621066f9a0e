/** The payloads of an attempt: its input as stored, and the result that it stores. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { messageOf } from '../../core/errors.ts'
import { type Failure, toBoundedText } from '../../core/failure.ts'
import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'
import { decodeValue } from '../../core/values.ts'
import { type Schema, validate } from '../schema.ts'
import { resultText } from '../stored-values.ts'

/** Decodes the input and checks it with the schema of the job type. */
export async function readInput(
  schema: Schema | undefined,
  text: string,
): Promise<{ readonly value: unknown } | { readonly failure: Failure }> {
  let value: unknown
  try {
    value = decodeValue(text)
  } catch (error) {
    return { failure: invalidInput(messageOf(error)) }
  }
  const checked = await validate(schema, value)
  return checked.ok ? { value: checked.value } : { failure: invalidInput(checked.why) }
}

function invalidInput(why: string): Failure {
  const message = toBoundedText(`The input is invalid: ${why}`)
  return { class: 'invalid_input', kind: 'invalid_input', message }
}

/** The work is done even if its result cannot be stored, so the job succeeds without one. */
export function resultTextOf(
  output: unknown,
  { id, type }: Job,
  { bounds, logger }: { readonly bounds: JsonBounds; readonly logger: Logger },
): string | undefined {
  return resultText(output, bounds, (note) => {
    logger.warn(
      { event: 'job.result_not_stored', job_id: id, type, ...note },
      `The job succeeded, but its result is not stored: the value at ${note.path} ${note.why}`,
    )
  })
}
