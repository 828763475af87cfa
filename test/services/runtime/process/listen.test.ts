import { match, ok, rejects } from 'node:assert/strict';
import { createServer } from 'node:http';
import { listen } from '#runtime/process/listen.ts';
import { suite } from '#test/support/suite.ts';

suite('listen', (t) => {
  t('the error for an occupied port names the port and the setting', async () => {
    const [first, second] = [createServer(), createServer()];
    try {
      const port = await listen(first, { host: '127.0.0.1', port: 0, setting: 'PORT' });
      ok(port > 0);
      const words = new RegExp(`^Port ${port} of 127.0.0.1 is in use by another program: .* with PORT \\(0 = any`);
      await rejects(listen(second, { host: '127.0.0.1', port, setting: 'PORT' }), (error: Error) => {
        match(error.message, words);
        return (error.cause as NodeJS.ErrnoException).code === 'EADDRINUSE';
      });
    } finally {
      first.close();
    }
  });

  t('the error for a foreign address names the address', async () => {
    const at = { host: '192.0.2.1', port: 0, setting: 'PORT' };
    await rejects(listen(createServer(), at), /This machine has no address 192\.0\.2\.1 .* set HOST or OPS_HOST/);
  });
});
