/** A stored payload as text. Numbers are not parsed: they are shown exactly as they are stored. */
import { useState } from 'preact/hooks'
import { addressOf, authorization, type Refused, reach, refusalOf } from '../api/client.ts'
import type { Payload } from '../api/operations.ts'
import { count } from '../format.ts'
import { indented } from './indented.ts'
import { Copy, Empty, Failure, Lines } from './parts.tsx'

interface Whole {
  readonly id: string
  readonly what: 'input' | 'result'
}

export function PayloadText({ payload, of }: { payload: Payload | null; of?: Whole }) {
  const [error, setError] = useState<Refused>()
  if (payload === null) return <Empty title={of ? `No ${of.what}` : 'No value'} />
  const save = (whole: Whole) => download(whole).catch(setError)
  return (
    <div class="stack">
      <Lines text={indented(payload.text)} />
      <div class="row small muted">
        {count(payload.bytes)} bytes{payload.truncated && ', shown in part'}
        <Copy text={payload.text} />
        {of && (
          <button type="button" class="copy" onClick={() => void save(of)}>
            Download
          </button>
        )}
      </div>
      <Failure error={error} />
    </div>
  )
}

/** Loads the whole payload with the token of this tab, and saves it as a file. */
async function download({ id, what }: Whole): Promise<void> {
  const name = what === 'input' ? 'downloadInput' : 'downloadResult'
  const response = await reach(addressOf(name, { params: { id } }), { headers: authorization() })
  if (!response.ok) throw await refusalOf(response)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await response.blob())
  link.download = `${what}-${id}.json`
  link.click()
  URL.revokeObjectURL(link.href)
}
