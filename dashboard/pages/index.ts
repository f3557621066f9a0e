/** All pages. A page is one file, listed here; README.md says how to add one. */
import type { ComponentType } from 'preact'
import { AuditPage } from './audit.tsx'
import { DoctorPage } from './doctor.tsx'
import { EffectsPage } from './effects.tsx'
import { FlowPage } from './flow.tsx'
import { FlowsPage } from './flows.tsx'
import { InboxPage } from './inbox.tsx'
import { JobPage } from './job.tsx'
import { JobsPage } from './jobs.tsx'
import { LimitPage } from './limit.tsx'
import { LimitsPage } from './limits.tsx'
import { MachinesPage } from './machines.tsx'
import { OverviewPage } from './overview.tsx'
import { QueuePage } from './queue.tsx'
import { QueuesPage } from './queues.tsx'
import { RunPage } from './run.tsx'
import { RunsPage } from './runs.tsx'
import { SchedulePage } from './schedule.tsx'
import { SchedulesPage } from './schedules.tsx'
import { WorkersPage } from './workers.tsx'

export interface PageSpec {
  /** `/jobs/:id`: a segment with a colon is given to the page under its name. */
  readonly path: string
  readonly title: string
  /** `g` and this letter go there. */
  readonly key?: string
  /** Not in the navigation. */
  readonly isInner?: true
  readonly Page: ComponentType<Record<string, string>>
}

const page = <Props extends object>(Page: ComponentType<Props>) =>
  Page as ComponentType<Record<string, string>>

export const PAGES: readonly PageSpec[] = [
  { path: '/', title: 'Overview', key: 'o', Page: page(OverviewPage) },
  { path: '/jobs', title: 'Jobs', key: 'j', Page: page(JobsPage) },
  { path: '/jobs/:id', title: 'Job', isInner: true, Page: page(JobPage) },
  { path: '/flows', title: 'Flows', key: 'f', Page: page(FlowsPage) },
  { path: '/flows/:flow', title: 'Flow', isInner: true, Page: page(FlowPage) },
  { path: '/inbox', title: 'Inbox', key: 'i', Page: page(InboxPage) },
  { path: '/effects', title: 'Effects', key: 'e', Page: page(EffectsPage) },
  { path: '/runs', title: 'Runs', key: 'r', Page: page(RunsPage) },
  { path: '/runs/:id', title: 'Run', isInner: true, Page: page(RunPage) },
  { path: '/queues', title: 'Queues', key: 'q', Page: page(QueuesPage) },
  { path: '/queues/:queue', title: 'Queue', isInner: true, Page: page(QueuePage) },
  { path: '/limits', title: 'Limits', key: 'l', Page: page(LimitsPage) },
  { path: '/limits/:limit', title: 'Limit', isInner: true, Page: page(LimitPage) },
  { path: '/schedules', title: 'Schedules', key: 's', Page: page(SchedulesPage) },
  { path: '/schedules/:schedule', title: 'Schedule', isInner: true, Page: page(SchedulePage) },
  { path: '/workers', title: 'Workers', key: 'w', Page: page(WorkersPage) },
  { path: '/doctor', title: 'Doctor', key: 'd', Page: page(DoctorPage) },
  { path: '/audit', title: 'Audit', key: 'a', Page: page(AuditPage) },
  { path: '/machines', title: 'Machines', key: 'm', Page: page(MachinesPage) },
]

export const NAVIGATION: readonly PageSpec[] = PAGES.filter(({ isInner }) => !isInner)
