import { SetupError } from '#contracts/ports/setup-error.ts';
import { help, readOptions, UsageError } from './options.ts';

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) process.stdout.write(help());
  else {
    // All the rest takes a second to load, and a wrong word is answered before.
    const { serve } = await import('./serve.ts');
    await serve(options);
  }
} catch (error) {
  const isUsage = error instanceof UsageError;
  if (!isUsage && !(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n${isUsage ? 'See --help.\n' : ''}`);
  process.exitCode = 2;
}
