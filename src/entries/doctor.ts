/** `pawl/doctor`: for programs that check a store and repair it, as `pawl doctor` does. */
export type { Thresholds } from '../doctor/checks/check.ts'
export type { RunRecords } from '../doctor/checks/runs-are-whole.ts'
export {
  type CheckOptions,
  Doctor,
  type RepairOptions,
  type Report as DoctorReport,
} from '../doctor/doctor.ts'
export type { Finding, PromiseId, Remedy, Severity } from '../doctor/finding.ts'
export type { Change, Repair } from '../doctor/repairs.ts'
