/** All routes. A resource is one file, listed here. */
import type { Route } from '../route.ts'
import { routes as effects } from './effects.ts'
import { routes as flows } from './flows.ts'
import { routes as inbox } from './inbox.ts'
import { routes as jobsAct } from './jobs-act.ts'
import { routes as jobsEnqueue } from './jobs-enqueue.ts'
import { routes as jobsRead } from './jobs-read.ts'
import { routes as ledger } from './ledger.ts'
import { routes as limits } from './limits.ts'
import { routes as overview } from './overview.ts'
import { routes as queues } from './queues.ts'
import { routes as retention } from './retention.ts'
import { routes as runs } from './runs.ts'
import { routes as runsAct } from './runs-act.ts'
import { routes as runsContent } from './runs-content.ts'
import { routes as schedules } from './schedules.ts'
import { routes as signalTokens } from './signal-tokens.ts'
import { routes as signals } from './signals.ts'
import { routes as stream } from './stream.ts'
import { routes as system } from './system.ts'
import { routes as tokens } from './tokens.ts'
import { routes as work } from './work.ts'

export const ROUTES: readonly Route[] = [
  ...jobsEnqueue,
  ...jobsRead,
  ...jobsAct,
  ...signals,
  ...flows,
  ...signalTokens,
  ...inbox,
  ...effects,
  ...queues,
  ...limits,
  ...schedules,
  ...retention,
  ...runs,
  ...runsContent,
  ...runsAct,
  ...overview,
  ...stream,
  ...system,
  ...ledger,
  ...tokens,
  ...work,
]
