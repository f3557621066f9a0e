// A process that holds runs: does what it is asked by messages, one at a time.
import { decideRun } from 'pawl/rules'
import { documentationRun, openFolderJournal } from 'pawl/runs'

const AUTHOR = { trace_id: 't', span_id: 's', actor: `process ${process.pid}` }
let journal
let writer

const deeds = {
  async 'ready?'() {},
  async journal({ path }) {
    journal = await openFolderJournal({ path })
  },
  async create({ runId }) {
    const { facts } = decideRun(documentationRun, null, { kind: 'create' })
    writer = await journal.create(runId, facts, AUTHOR)
  },
  async open({ runId }) {
    writer = await journal.open(runId, AUTHOR)
  },
  async applyCommand({ command }) {
    const { facts } = decideRun(documentationRun, writer.run, command)
    await writer.append(facts, AUTHOR)
  },
  /**
   * Appends for ever; each acknowledged event is sent before the next append. An append may wait
   * for nothing: without this, the process would never end its turn, and send nothing more once
   * the pipe is full.
   */
  async pour() {
    for (let i = 0; ; i++) {
      // A value that no process has written: the same value again would be no event.
      const to = `${process.pid} ${i}`
      const command = { kind: 'change-section', section: `s${i % 7}`, to }
      const { facts } = decideRun(documentationRun, writer.run, command)
      const [event] = await writer.append(facts, AUTHOR)
      await new Promise((sent) => process.send({ acknowledged: event.event_id }, sent))
    }
  },
  async artifact({ name, text }) {
    await writer.writeArtifact(name, Buffer.from(text))
  },
  async close() {
    await writer.close()
  },
}

process.on('message', async (asked) => {
  try {
    await deeds[asked.kind](asked)
    process.send({ done: asked.kind, seq: writer?.run.last_seq })
  } catch (error) {
    process.send({ code: error.code, message: error.message, details: error.details })
  }
})
process.on('disconnect', () => process.exit())
