// After an interleaving: do the facts keep the promises, does every answer that a caller got agree
// with the facts, and has every fact exactly one caller who was told of it?
import { checkAccounts } from './accounts.ts'
import { Hearing } from './answers.ts'
import { Case, type Evidence } from './case.ts'

/** Everything that is wrong with an interleaving; nothing where all is as promised. */
export async function judge(evidence: Evidence): Promise<readonly string[]> {
  const open = await Case.open(evidence)
  const hearing = new Hearing(open)
  for (const told of evidence.told) hearing.hear(told)
  checkAccounts(open)
  return open.complaints
}
