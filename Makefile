# A thin front: CMake does the work. Each target installs what it misses when run as root on Debian, and says what to
# install when not.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CC ?= cc
CTEST_ARGS ?=

.PHONY: all deps test native-test test-deps demo-deps sanitize demo bench fuzz ptvm-test ptvm-long install format clean

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja: | deps
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX)

deps:
	@tools/deps.sh build

test-deps:
	@tools/deps.sh build test

# What fails is tried once more, and both are printed: many tests measure time, on machines that others use too. What runs in the PT
# machine comes behind the rest, since it fills this one.
test: native-test
	$(MAKE) ptvm-test

native-test: test-deps all sanitize
	ctest --test-dir $(BUILD) -LE 'ptvm|machine' -j $(JOBS) --output-on-failure --repeat until-pass:2 --timeout 600 $(CTEST_ARGS)

# The unit and golden tests once more with AddressSanitizer and UndefinedBehaviorSanitizer, and the fuzz targets, built by clang.
sanitize: $(BUILD)/sanitize/build.ninja
	cmake --build $(BUILD)/sanitize -j $(JOBS)

$(BUILD)/sanitize/build.ninja: | test-deps
	cmake -S . -B $(BUILD)/sanitize -G Ninja -DST_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug \
	    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++

demo-deps:
	@tools/deps.sh build demo

demo: demo-deps all
	@BUILD=$(BUILD) tests/demo.sh

# ONLY="FIGURE..." measures these alone.
bench: test-deps all
	@BUILD=$(BUILD) tests/bench/run.sh $(ONLY)

# SECONDS_EACH a target, 60 if not given; ONLY="TARGET..." runs these alone.
fuzz: $(BUILD)/sanitize/build.ninja
	cmake --build $(BUILD)/sanitize -j $(JOBS) --target fuzzers
	@BUILD=$(BUILD) tests/fuzz/run.sh $(ONLY)

# In an emulated computer with Intel PT: the recorder and the decoder on the real driver, and that computer itself.
ptvm-test: test-deps all
	ctest --test-dir $(BUILD) --output-on-failure --repeat until-pass:2 -L '^ptvm$$'

# What takes too long for ptvm-test: every trigger in the PT machine, and what chance has a part in, more often.
ptvm-long: test-deps all
	ctest --test-dir $(BUILD) --output-on-failure -L '^machine-long$$'

install: all
	cmake --install $(BUILD)

format:
	git ls-files '*.c' '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf $(BUILD)
