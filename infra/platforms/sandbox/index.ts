/** A social network of our own for test-mode credentials, the tour and the tests: real in its faults, harmless in its reach. */
export { type SandboxGap, SandboxNetwork, type SandboxOptions } from './adapter.ts';
export { type Fault, type FaultName, faultNames, faultsOf } from './faults.ts';
export { type SandboxProfile, sandboxProfile } from './ids.ts';
export type { GivenMedia } from './media.ts';
export type { LedgerFilter, LedgerRow } from './network.ts';
