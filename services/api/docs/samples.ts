import type { Contract } from './contract.ts';
import { type SampleCall, sampleCallsOf } from './samples/call.ts';
import { curlSample } from './samples/curl.ts';
import { pythonSample } from './samples/python.ts';
import { typescriptSample } from './samples/typescript.ts';

/** What the viewer shows beside an operation, one for each language. */
export interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

export const samplesOf = (call: SampleCall, baseUrl: string): readonly CodeSample[] => [
  { lang: 'bash', label: 'curl', source: curlSample(call, baseUrl) },
  { lang: 'typescript', label: 'TypeScript', source: typescriptSample(call, baseUrl) },
  { lang: 'python', label: 'Python', source: pythonSample(call, baseUrl) },
];

/** By operationId. */
export const allSamples = (contract: Contract, baseUrl: string): ReadonlyMap<string, readonly CodeSample[]> =>
  new Map(sampleCallsOf(contract).map((call) => [call.operationId, samplesOf(call, baseUrl)]));
