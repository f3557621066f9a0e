// A short life of a run, for whoever watches the system calls of this process.
import { decideRun } from 'pawl/rules'
import { documentationRun, openFolderJournal } from 'pawl/runs'

const { path } = JSON.parse(process.argv[2])
const author = { trace_id: 't', span_id: 's', actor: 'story' }
const journal = await openFolderJournal({ path })
const { facts } = decideRun(documentationRun, null, { kind: 'create' })
const writer = await journal.create('run-1', facts, author)
const tell = async (command) => {
  const decision = decideRun(documentationRun, writer.run, command)
  await writer.append(decision.facts, author)
  process.stdout.write(`${JSON.stringify({ told: command.kind })}\n`)
}
await tell({ kind: 'move', to: 'CLONED_INPUTS' })
await tell({ kind: 'change-section', section: 'a', to: 'b' })
await writer.writeArtifact('plan.md', Buffer.from('plan'))
process.stdout.write(`${JSON.stringify({ told: 'artifact' })}\n`)
await journal.close()
